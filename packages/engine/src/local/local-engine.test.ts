import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { defaultTargetModules, type SessionSpec, type TrainingSpec } from '@loopwright/protocol';
import { expectSameBits, rejection, temporaryDirectory, tinyModelDirectory } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { LocalEngine } from './local-engine.js';
import type { SliceEvent } from './slices.js';
import {
  adam,
  base,
  crossEntropy,
  datum,
  prompt,
  sampleRequest,
  type TestEngine,
  tinyEngine,
} from './testing/tiny-engine.js';

const session = (name = 's', extra: Partial<SessionSpec> = {}): SessionSpec => ({
  name,
  baseModel: 'llama-tied',
  training: { type: 'lora', rank: 4, alpha: 8, targetModules: ['q_proj', 'v_proj'] },
  seed: 1,
  ...extra,
});

const long = {
  type: 'forward-backward',
  data: Array.from({ length: 40 }, (_, i) => datum(60, i)),
  loss: crossEntropy,
} as const;

describe('a long pass', () => {
  it('lets tokens be sampled meanwhile, and says how far it is', async () => {
    const events: SliceEvent[] = [];
    await using test = await tinyEngine('llama-tied', { microBatchTokens: 64, onSlice: (event) => events.push(event) });
    const { engine } = test;
    await engine.createSession(session());
    // Programs are compiled at their first use, which is one long slice.
    await engine.pass('s', { ...long, data: [datum(60)] });
    const request = sampleRequest(prompt(9), { numSamples: 4, maxTokens: 10 });
    const alone = await engine.sample(request);
    events.length = 0;
    const order: string[] = [];
    const shares: number[] = [];
    let sampling: ReturnType<typeof engine.sample> | undefined;
    const onProgress = (done: number) => {
      shares.push(done);
      if (shares.length > 1) return;
      sampling = engine.sample(request);
      void sampling.then(() => order.push('sample'));
    };
    await engine.pass('s', long, { onProgress });
    order.push('pass');
    expect((await sampling)!.sequences).toHaveLength(4);
    expect(order).toEqual(['sample', 'pass']);
    for (const [i, { logprobs }] of (await sampling)!.sequences.entries())
      expectSameBits(logprobs, alone.sequences[i]!.logprobs);
    expect(shares).toEqual([...shares].sort((a, b) => a - b));
    expect(shares.length).toBeGreaterThan(10);
    expect(shares.at(-1)).toBe(1);
    const first = events.findIndex(({ type }) => type === 'sampling');
    expect(first).toBeGreaterThan(0);
    expect(events.slice(first).filter(({ type }) => type === 'training').length).toBeGreaterThan(5);
    for (const [i, { startMs }] of events.entries())
      if (i > 0) expect(startMs).toBeGreaterThanOrEqual(events[i - 1]!.endMs);
  });

  it('that is cancelled leaves the session as it was, and other sessions go on', async () => {
    await using test = await tinyEngine('llama-tied', { microBatchTokens: 64 });
    const { engine } = test;
    for (const name of ['a', 'b', 'c']) await engine.createSession(session(name));
    const controller = new AbortController();
    const first = { ...long, data: [datum(20, 99)] };
    await engine.pass('a', first);
    const cancelled = engine.pass('a', long, {
      signal: controller.signal,
      onProgress: () => controller.abort(new Error('no')),
    });
    const other = engine.pass('b', first);
    expect(await rejection(cancelled)).toMatchObject({ message: 'no' });
    await other;
    // The same gradient in both gives the same step.
    const [a, b] = [await engine.optimStep('a', adam), await engine.optimStep('b', adam)];
    expect(a.gradNorm).toBe(b.gradNorm);
    expect((await engine.optimStep('c', adam)).gradNorm).toBe(0);
  });

  it('of one session changes no bit of another', async () => {
    await using test = await tinyEngine('llama-tied', { microBatchTokens: 64 });
    const { engine } = test;
    const run = async (name: string) => {
      await engine.createSession(session(name));
      for (const seed of [1, 2]) {
        await engine.pass(name, { ...long, data: [datum(33, seed), datum(64, seed + 9)] });
        await engine.optimStep(name, adam);
      }
      return (await engine.pass(name, { ...long, type: 'forward', data: [datum(30)] })).outputs[0]!.logprobs;
    };
    const alone = await run('alone');
    const together = await Promise.all(['x', 'y', 'z'].map(run));
    for (const logprobs of together) expectSameBits(logprobs, alone);
  });
});

/** Adapters of eight kinds: ranks below, at and above the blocks in which they are fed, on some layers, on all, on the head. */
const kinds: readonly Omit<Extract<TrainingSpec, { type: 'lora' }>, 'type' | 'alpha'>[] = [
  { rank: 8, targetModules: defaultTargetModules },
  { rank: 1, targetModules: ['q_proj', 'v_proj'] },
  { rank: 4, targetModules: ['lm_head', 'down_proj'] },
  { rank: 16, targetModules: defaultTargetModules },
  { rank: 17, targetModules: ['q_proj', 'v_proj'] },
  { rank: 32, targetModules: ['lm_head', 'down_proj'] },
  { rank: 8, targetModules: defaultTargetModules },
  { rank: 3, targetModules: defaultTargetModules },
];

/** Everything that a session can do, in the order of a training loop; `kind` makes data, adapter and prompts its own. @returns all results and files */
async function everything({ engine, folder }: TestEngine, name: string, kind: number): Promise<unknown> {
  const training = { type: 'lora', alpha: 16, ...kinds[kind]! } as const;
  await engine.createSession(session(name, { training, seed: kind }));
  const results: unknown[] = [];
  for (let round = 0; round < 2; round++) {
    const lengths = [[33, 64, 5], [90 - kind]];
    for (const some of lengths) {
      const data = some.map((length, i) => datum(length, 100 * kind + 10 * round + i));
      results.push(await engine.pass(name, { ...long, data }));
    }
    results.push(await engine.optimStep(name, adam));
    const directory = folder();
    const { files } = await engine.saveState(name, { version: `${name}/${round}`, directory });
    for (const file of files) results.push(await readFile(`${directory}/${file}`));
    const version = { type: 'version', id: `${name}/${round}`, directory } as const;
    const requests = [version, base].flatMap((weights) => [
      sampleRequest(prompt(9 + kind, kind), { weights, numSamples: 6, maxTokens: 20, seed: round }),
      sampleRequest(prompt(30, kind), {
        weights,
        temperature: 0.7,
        topP: 0.9,
        promptLogprobs: true,
        topkPromptLogprobs: 3,
      }),
    ]);
    const scores = [1, 16, 47].map((length) =>
      engine.computeLogprobs({ prompt: prompt(length, kind), weights: version }),
    );
    results.push(await Promise.all(requests.map((request) => engine.sample(request))), await Promise.all(scores));
  }
  results.push(await engine.pass(name, { ...long, type: 'forward', data: [datum(70, kind)] }));
  await engine.closeSession(name);
  return results;
}

describe('seven neighbours', () => {
  it.each(['llama-tied', 'qwen3'] as const)(
    'that train, save, sample and score change no bit of anything on %s',
    async (model) => {
      // Few rows, so that batches are full and requests queue.
      await using test = await tinyEngine(model, { threads: 2, microBatchTokens: 64, maxRows: 24 });
      const alone = await everything(test, 'alone', 0);
      const together = await Promise.all(kinds.map((_, kind) => everything(test, `together-${kind}`, kind)));
      expect(bitsOf(together[0])).toEqual(bitsOf(alone));
      // Same kind of adapter, other data: so what was compared does tell sessions apart.
      expect(bitsOf(together[6])).not.toEqual(bitsOf(alone));
      expect(bitsOf(await everything(test, 'again', 0))).toEqual(bitsOf(alone));
    },
  );
});

describe('a prompt', () => {
  it('scored alone has the bits that it has among many others, beside sampling and training', async () => {
    await using test = await tinyEngine('llama-tied', { threads: 2, microBatchTokens: 64 });
    const { engine } = test;
    await engine.createSession(session());
    await engine.pass('s', { ...long, data: [datum(20)] });
    await engine.optimStep('s', adam);
    const directory = test.folder();
    await engine.saveWeights('s', { version: 'v', directory, merge: false });
    const version = { type: 'version', id: 'v', directory } as const;
    for (const weights of [base, version]) {
      for (const length of [1, 17, 100]) {
        const request = { prompt: prompt(length, 7), weights };
        const { logprobs } = await engine.computeLogprobs(request);
        const training = engine.pass('s', { ...long, data: long.data.slice(0, 4) });
        const sampling = engine.sample(sampleRequest(prompt(11), { numSamples: 20, maxTokens: 6 }));
        const others = Array.from({ length: 30 }, (_, i) =>
          engine.computeLogprobs({ prompt: prompt(1 + ((i * 13) % 90), i), weights: i % 3 === 0 ? version : base }),
        );
        const beside = await engine.computeLogprobs(request);
        expectSameBits(beside.logprobs, logprobs, `${length} tokens`);
        await Promise.all([training, sampling, ...others]);
      }
    }
  });
});

/** Results with every array as text, so that NaN and −0 are told apart by their bits. */
function bitsOf(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) {
    const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
    return `${value.constructor.name} ${createHash('sha256').update(bytes).digest('hex')}`;
  }
  if (Array.isArray(value)) return value.map(bitsOf);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, bitsOf(member)]));
}

describe('a step', () => {
  it('tells a fingerprint of the weights that it made', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    const prints: (string | undefined)[] = [];
    for (const [name, learningRate] of [
      ['a', 1e-3],
      ['b', 1e-3],
      ['c', 1.001e-3],
    ] as const) {
      await engine.createSession(session(name));
      await engine.pass(name, { ...long, data: [datum(20)] });
      prints.push((await engine.optimStep(name, { ...adam, learningRate })).weightsFingerprint);
    }
    expect(prints[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(prints[1]).toBe(prints[0]);
    expect(prints[2]).not.toBe(prints[0]);
  });

  it('is done whole although it is cancelled half way, and not begun when cancelled before', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    await engine.createSession(session());
    await engine.pass('s', { ...long, data: [datum(20)] });
    const signal = AbortSignal.abort(new Error('no'));
    expect(await rejection(engine.optimStep('s', adam, { signal }))).toMatchObject({ message: 'no' });
    const { step, gradNorm, metrics } = await engine.optimStep('s', { ...adam, gradClipNorm: 1 });
    expect(step).toBe(1);
    expect(gradNorm).toBeGreaterThan(0);
    expect(metrics['optim/clip_factor']).toBeCloseTo(Math.min(1, 1 / gradNorm), 5);
  });

  it('moves B matrices at the rate times the ratio of LoRA+', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    const after: Float32Array[] = [];
    // At the first step A has no gradient, since B is 0: so a ratio of 4 is the same as a rate of 4.
    for (const [name, extra] of [
      ['a', { loraPlusLrRatio: 4 }],
      ['b', { learningRate: 4 * adam.learningRate }],
      ['c', {}],
    ] as const) {
      await engine.createSession(session(name));
      await engine.pass(name, { ...long, data: [datum(20)] });
      await engine.optimStep(name, { ...adam, ...extra });
      after.push((await engine.pass(name, { ...long, type: 'forward', data: [datum(20)] })).outputs[0]!.logprobs);
    }
    expectSameBits(after[0]!, after[1]!);
    expect(after[0]).not.toEqual(after[2]);
  });
});

describe('a session', () => {
  it('starts as the base, and its seed makes its adapter', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    const logprobs: Float32Array[] = [];
    for (const [name, seed] of [
      ['a', 1],
      ['b', 1],
      ['c', 2],
    ] as const) {
      const plan = await engine.createSession(session(name, { seed }));
      expect(plan).toMatchObject({ engine: 'local', deterministic: true, threads: 1, samplerPath: 'apart' });
      const pass = { ...long, data: [datum(20)] };
      const { outputs } = await engine.pass(name, pass);
      const whole = Int32Array.of(...datum(20).modelInput, datum(20).targetTokens.data[19]!);
      const scored = await engine.computeLogprobs({ prompt: whole, weights: base });
      for (let i = 0; i < 20; i++) expect(outputs[0]!.logprobs[i]).toBeCloseTo(scored.logprobs[i + 1]!, 4);
      await engine.optimStep(name, adam);
      logprobs.push((await engine.pass(name, pass)).outputs[0]!.logprobs);
    }
    expectSameBits(logprobs[1]!, logprobs[0]!);
    expect(logprobs[2]).not.toEqual(logprobs[0]);
  });

  it('keeps the plan that it is given, so that a rebuilt one computes the same', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    const plan = await engine.createSession(session());
    const other = { ...plan, microBatchTokens: 32, lengthMultiple: 8 };
    await engine.closeSession('s');
    expect(await engine.createSession(session(), { plan: other })).toEqual(other);
    let slices = 0;
    await engine.pass('s', { ...long, data: [datum(30), datum(30)] }, { onProgress: () => slices++ });
    expect(slices).toBe(2);
  });

  it.each([
    ['a rank of 0', { training: { type: 'lora', rank: 0, alpha: 8, targetModules: ['q_proj'] } }, 'training.rank'],
    ['half a rank', { training: { type: 'lora', rank: 1.5, alpha: 8, targetModules: ['q_proj'] } }, 'training.rank'],
    [
      'a rank above 256',
      { training: { type: 'lora', rank: 257, alpha: 8, targetModules: ['q_proj'] } },
      'training.rank',
    ],
    [
      'no alpha',
      { training: { type: 'lora', rank: 1, alpha: Number.NaN, targetModules: ['q_proj'] } },
      'training.alpha',
    ],
    ['no modules', { training: { type: 'lora', rank: 1, alpha: 1, targetModules: [] } }, 'training.targetModules'],
    ['a seed that is no whole number', { seed: 0.5 }, 'seed'],
  ] as const)('with %s is refused', async (_, extra, field) => {
    await using test = await tinyEngine('llama-tied');
    const error = await rejection(test.engine.createSession(session('s', extra)));
    expect(error).toMatchObject({ code: 'invalid_argument', details: { field } });
  });

  it('is refused under a name in use, unknown after it is closed, and closing twice is harmless', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    await engine.createSession(session());
    expect(await rejection(engine.createSession(session()))).toMatchObject({ code: 'session_exists' });
    await engine.closeSession('s');
    await engine.closeSession('s');
    const directory = test.folder();
    for (const call of [
      () => engine.pass('s', long),
      () => engine.optimStep('s', adam),
      () => engine.clearGradient('s'),
      () => engine.saveWeights('s', { version: 'v', directory, merge: false }),
      () => engine.saveState('s', { version: 'v', directory }),
      () => engine.loadState('s', { directory, loadOptimizer: false }),
    ])
      expect(await rejection(call())).toMatchObject({ code: 'unknown_session' });
  });

  it('drops its pending gradient when asked', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    await engine.createSession(session());
    await engine.pass('s', { ...long, data: [datum(20)] });
    await engine.clearGradient('s');
    expect((await engine.optimStep('s', adam)).gradNorm).toBe(0);
  });
});

describe('an engine', () => {
  it('fails what is not done with `disposed` when it is closed, twice without harm', async () => {
    await using temporary = await temporaryDirectory();
    const engine = await LocalEngine.load(
      { id: 'tiny', directory: tinyModelDirectory('llama-tied') },
      { threads: 1, cacheDirectory: temporary.path, microBatchTokens: 64 },
    );
    await engine.createSession(session());
    const calls = [
      rejection(engine.pass('s', long)),
      rejection(engine.sample(sampleRequest(prompt(5), { numSamples: 200, maxTokens: 400 }))),
      rejection(engine.computeLogprobs({ prompt: prompt(5), weights: base })),
    ];
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all([engine[Symbol.asyncDispose](), engine[Symbol.asyncDispose]()]);
    for (const call of calls) expect(await call).toMatchObject({ code: 'disposed' });
    expect(await rejection(engine.sample(sampleRequest(prompt(5))))).toMatchObject({ code: 'disposed' });
    expect(await rejection(engine.createSession(session('t')))).toMatchObject({ code: 'disposed' });
    expect(await rejection(engine.optimStep('s', adam))).toMatchObject({ code: 'disposed' });
  });

  it('is not loaded from a directory that is no model', async () => {
    await using temporary = await temporaryDirectory();
    const load = (directory: string) =>
      rejection(LocalEngine.load({ id: 'x', directory }, { threads: 1, cacheDirectory: `${temporary.path}/cache` }));
    expect(await load(`${temporary.path}/none`)).toMatchObject({ code: 'unknown_model' });
    expect(await load(temporary.path)).toMatchObject({ code: 'model_invalid' });
  });
});
