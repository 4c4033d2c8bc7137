import { access } from 'node:fs/promises';
import { asLoopwrightError, type LoopwrightError, type SessionSpec, type TrainingSpec } from '@loopwright/protocol';
import { expectSameBits, rejection, temporaryDirectory, tinyModelDirectory } from '@loopwright/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import { ModelDirectory } from '../formats/model-directory.js';
import { LocalEngine } from './local-engine.js';
import { heldBytes, microBatchBytes, modelBytes, samplingBytes, scoringBytes, sessionBytes } from './memory.js';
import { defaultCacheBytes, planWithin } from './memory-limit.js';
import type { ModelConfig } from './models/config.js';
import { formOf, keptForm } from './models/sequence-form.js';
import { executionPlan } from './plan.js';
import { adam, base, crossEntropy, datum, prompt, sampleRequest, tinyEngine } from './testing/tiny-engine.js';

const training: TrainingSpec = { type: 'lora', rank: 4, alpha: 8, targetModules: ['q_proj', 'v_proj'] };
const session = (name = 's'): SessionSpec => ({ name, baseModel: 'llama-tied', training, seed: 1 });
const pass = (...data: ReturnType<typeof datum>[]) => ({ type: 'forward-backward', data, loss: crossEntropy }) as const;
const maxCacheBytes = 2 ** 20;
const cacheBytes = maxCacheBytes * (9 / 8);

const refused = async (work: Promise<unknown>): Promise<LoopwrightError> => asLoopwrightError(await rejection(work));

let config: ModelConfig;
beforeAll(async () => {
  await using directory = await ModelDirectory.open(tinyModelDirectory('llama-tied'));
  config = directory.config;
});

const row = (length: number, of = config) => {
  const form = formOf(executionPlan(of, { threads: 1, microBatchTokens: 8192 }, training).recompute, {
    rows: 1,
    length,
  });
  return microBatchBytes(of, training, { rows: 1, length, targets: 1, backward: true, form });
};
/** A limit under which sessions are planned with micro-batches of that many tokens. */
const limitFor = (tokens: number, { packWeights = false, of = config } = {}) =>
  Math.ceil(heldBytes({ config: of, training, cacheBytes, packWeights }) + row(tokens, of));

describe('the plan of a session', () => {
  const plan = (maxMemoryBytes: number, microBatchTokens = 8192) =>
    planWithin(executionPlan(config, { threads: 1, microBatchTokens }, training), {
      config,
      training,
      maxMemoryBytes,
      cacheBytes,
    });

  it('is left alone where its micro-batches fit', () => {
    const wanted = executionPlan(config, { threads: 1, microBatchTokens: 8192 }, training);
    expect(plan(limitFor(8192))).toEqual(wanted);
    expect(plan(limitFor(8192) - 1)).toEqual({ ...wanted, microBatchTokens: 4096 });
  });

  it('goes without packed weights before it goes without tokens', () => {
    const packing = { ...executionPlan(config, { threads: 1, microBatchTokens: 8192 }, training), packWeights: true };
    const within = (maxMemoryBytes: number) => planWithin(packing, { config, training, maxMemoryBytes, cacheBytes });
    expect(within(limitFor(8192, { packWeights: true }))).toEqual(packing);
    expect(within(limitFor(8192, { packWeights: true }) - 1)).toEqual({ ...packing, packWeights: false });
  });

  it('has micro-batches of which one long row fits, and of 64 tokens at least', () => {
    for (const tokens of [128, 1024, 3000]) {
      const { microBatchTokens } = plan(limitFor(tokens));
      expect(microBatchTokens).toBeLessThanOrEqual(tokens);
      expect(microBatchTokens).toBeGreaterThan(tokens / 2);
    }
    expect(plan(1).microBatchTokens).toBe(64);
    expect(plan(1, 32).microBatchTokens).toBe(32);
  });

  it('computes layers again in rows that would not fit otherwise, and in all where not even short ones do', () => {
    const deep = { config: { ...config, contextLength: 8192, layers: 30 }, training, cacheBytes };
    const wanted = executionPlan(deep.config, { threads: 1, microBatchTokens: 1024 }, training);
    const within = (length: number) => {
      const limit = limitFor(length, { of: deep.config });
      const { recompute, microBatchTokens } = planWithin(wanted, { ...deep, maxMemoryBytes: limit });
      return [recompute?.layersOver, microBatchTokens];
    };
    expect(wanted.recompute?.layersOver).toBe(8192);
    expect([8192, 4096, 4095].map(within)).toEqual([
      [8192, 1024],
      [4096, 1024],
      [2048, 1024],
    ]);
    expect(within(256)).toEqual([256, 256]);
    expect(within(255)[0]).toBe(0);
    expect(within(255)[1]).toBeGreaterThan(256);
    // In two layers there is nothing to be saved so.
    expect(plan(limitFor(128), 1024)).toMatchObject({ microBatchTokens: 128, recompute: { layersOver: 1024 } });
  });

  it('records what a tight limit led to, and gives the same bits on a machine with more memory', async () => {
    const run = async (engine: LocalEngine) => {
      let slices = 0;
      await engine.pass('s', pass(datum(60, 1), datum(60, 2), datum(50, 3), datum(40, 4)), {
        onProgress: () => slices++,
      });
      await engine.optimStep('s', adam);
      const { outputs } = await engine.pass('s', { ...pass(datum(60, 9)), type: 'forward' });
      return { slices, logprobs: outputs[0]!.logprobs };
    };
    await using tight = await tinyEngine('llama-tied', { maxMemoryBytes: limitFor(128), maxCacheBytes });
    const recorded = await tight.engine.createSession(session());
    expect(recorded.microBatchTokens).toBe(128);
    const first = await run(tight.engine);
    expect(first.slices).toBe(2);
    await using wide = await tinyEngine('llama-tied');
    await wide.engine.createSession(session(), { plan: recorded });
    const second = await run(wide.engine);
    expect(second.slices).toBe(2);
    expectSameBits(second.logprobs, first.logprobs);
  });
});

describe('refused before any work, with what is needed, what there is, and a remedy, is', () => {
  const refusal = (field: string | RegExp, limit: number) => ({
    code: 'memory_limit_exceeded',
    status: 400,
    message: expect.stringContaining(`(${limit} bytes)`),
    details: {
      field: expect.stringMatching(field),
      got: expect.stringMatching(/\(\d+ bytes\)$/),
      remedy: expect.stringContaining('--max-memory'),
      neededBytes: expect.any(Number),
      limitBytes: limit,
    },
  });

  it('a model', async () => {
    await using folder = await temporaryDirectory();
    const cacheDirectory = `${folder.path}/cache`;
    const maxMemoryBytes = modelBytes(config) - 1;
    const card = { id: 'tiny', directory: tinyModelDirectory('llama-tied') };
    const error = await refused(LocalEngine.load(card, { cacheDirectory, maxMemoryBytes }));
    expect(error).toMatchObject(refusal('baseModel', maxMemoryBytes));
    await expect(access(cacheDirectory)).rejects.toThrow('ENOENT');
  });

  it('a session: by itself, or beside others; one that is made anew goes on', async () => {
    const own = sessionBytes(config, training);
    const size = { rows: 1, length: 16, targets: 1, backward: true };
    const least = microBatchBytes(config, training, { ...size, form: keptForm });
    const maxMemoryBytes = Math.ceil(modelBytes(config) + 1.5 * own + least);
    await using test = await tinyEngine('llama-tied', { maxMemoryBytes });
    const plan = await test.engine.createSession(session('a'));
    const error = await refused(test.engine.createSession(session('b')));
    expect(error).toMatchObject(refusal('training', maxMemoryBytes));
    expect(error.details.remedy).toContain('end another session');
    expect(await test.engine.createSession(session('b'), { plan })).toEqual(plan);
    const full: SessionSpec = { ...session('c'), training: { type: 'full' } };
    await test.engine.closeSession('a');
    await test.engine.closeSession('b');
    const large = await refused(test.engine.createSession(full));
    expect(large.details.remedy).toMatch(/^choose an adapter instead of all weights, or raise/);
    await test.engine.createSession(session('b'));
  });

  it('a pass with a row that cannot fit, which leaves no trace', async () => {
    const maxMemoryBytes = Math.ceil(modelBytes(config) + sessionBytes(config, training) + row(128));
    await using test = await tinyEngine('llama-tied', { maxMemoryBytes });
    const { engine } = test;
    await engine.createSession(session());
    const shares: number[] = [];
    const onProgress = (share: number) => shares.push(share);
    const error = await refused(engine.pass('s', pass(datum(20), datum(200)), { onProgress }));
    expect(error).toMatchObject(refusal(/^data\[1\]\.modelInput$/, maxMemoryBytes));
    expect(error.details.neededBytes).toBeGreaterThan(maxMemoryBytes);
    expect(shares).toEqual([]);
    expect((await engine.optimStep('s', adam)).gradNorm).toBe(0);
    await engine.pass('s', pass(datum(20), datum(128)), { onProgress });
    expect(shares.at(-1)).toBe(1);
    // Done again for a session that is made anew it is not refused: it had its memory when it was new.
    const again = await engine.pass('s', pass(datum(20), datum(200)), { isRepeat: true });
    expect(again.outputs).toHaveLength(2);
  });

  it('a prompt to go on from, and one to be scored', async () => {
    const sampling = modelBytes(config) + samplingBytes(config, { rows: 1, positions: 64, promptTokens: 48 });
    await using test = await tinyEngine('llama-tied', { maxMemoryBytes: sampling });
    const { engine } = test;
    await engine.sample(sampleRequest(prompt(48), { maxTokens: 16 }));
    const error = await refused(engine.sample(sampleRequest(prompt(48), { maxTokens: 17 })));
    expect(error).toMatchObject(refusal('prompt', sampling));
    const longer = await refused(engine.computeLogprobs({ prompt: prompt(400), weights: base }));
    expect(longer).toMatchObject(refusal('prompt', sampling));
    const scoring = modelBytes(config) + scoringBytes(config, 100);
    await using other = await tinyEngine('llama-tied', { maxMemoryBytes: scoring });
    await other.engine.computeLogprobs({ prompt: prompt(100), weights: base });
    const score = await refused(other.engine.computeLogprobs({ prompt: prompt(101), weights: base }));
    expect(score).toMatchObject(refusal('prompt', scoring));
  });
});

describe('the memory for keys and values', () => {
  it('is 2 GiB, or an eighth of a limit that is small', () => {
    expect(defaultCacheBytes(24 * 2 ** 30)).toBe(2 * 2 ** 30);
    expect(defaultCacheBytes(4 * 2 ** 30)).toBe(2 ** 29);
  });
});
