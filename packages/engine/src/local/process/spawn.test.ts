import { execFileSync } from 'node:child_process';
import { access, readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { LoopwrightError, type SessionSpec } from '@loopwright/protocol';
import {
  expectSameBits,
  rejection,
  type TemporaryDirectory,
  temporaryDirectory,
  tinyModelDirectory,
} from '@loopwright/testkit';
import { beforeAll, describe, expect, it } from 'vitest';
import type { Engine } from '../../engine.js';
import { ModelDirectory } from '../../formats/model-directory.js';
import type { SwapEvent } from '../../swap.js';
import { microBatchBytes, modelBytes, sessionBytes } from '../memory.js';
import { keptForm } from '../models/sequence-form.js';
import type { SliceEvent } from '../slices.js';
import { adam, crossEntropy, datum, prompt, sampleRequest, tinyEngine } from '../testing/tiny-engine.js';
import { type SpawnOptions, spawnEngine } from './spawn.js';

const entry = new URL('../../../dist/local/process/main.js', import.meta.url);

beforeAll(async () => {
  await access(fileURLToPath(entry)).catch(() => {
    throw new Error('these tests run the compiled engine: build it first with `npx tsc -b packages/engine`');
  });
});

const spec: SessionSpec = {
  name: 's',
  baseModel: 'llama-tied',
  training: { type: 'lora', rank: 4, alpha: 8, targetModules: ['q_proj', 'v_proj'] },
  seed: 1,
};
const pass = { type: 'forward-backward', data: [datum(20), datum(31, 1)], loss: crossEntropy } as const;
const long = { ...pass, data: Array.from({ length: 60 }, (_, i) => datum(60, i)) };

interface Spawned extends AsyncDisposable {
  readonly engine: Engine;
  readonly temporary: TemporaryDirectory;
  readonly exits: LoopwrightError[];
  /** Resolves when the engine has said that its process ended. */
  readonly exited: Promise<void>;
}

async function spawnTiny(options: Partial<SpawnOptions> = {}): Promise<Spawned> {
  const temporary = await temporaryDirectory();
  const exits: LoopwrightError[] = [];
  let seen = () => {};
  const exited = new Promise<void>((resolve) => {
    seen = resolve;
  });
  const engine = await spawnEngine(
    { id: 'llama-tied', directory: tinyModelDirectory('llama-tied') },
    {
      entry,
      threads: 1,
      microBatchTokens: 64,
      cacheDirectory: temporary.path,
      onExit: (error) => {
        exits.push(error);
        seen();
      },
      ...options,
    },
  );
  return {
    engine,
    temporary,
    exits,
    exited,
    [Symbol.asyncDispose]: async () => {
      await engine[Symbol.asyncDispose]();
      await temporary[Symbol.asyncDispose]();
    },
  };
}

/** Children of this process that run the engine's entry and are given this folder. */
async function childPids(folder: string): Promise<number[]> {
  if (process.platform !== 'linux') {
    const listed = execFileSync('ps', ['-axo', 'pid=,ppid=,command='], { encoding: 'utf8' }).split('\n');
    return listed.flatMap((line) =>
      line.includes(folder) && line.includes('main.js') ? [Number(line.trim().split(/\s+/)[0])] : [],
    );
  }
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      const command = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
      return command.includes(folder) && command.includes(fileURLToPath(entry)) ? [Number(pid)] : [];
    }),
  );
  return found.flat();
}

describe('an engine in a process of its own', () => {
  it('gives the results of one in this process, bit for bit', async () => {
    const events: SliceEvent[] = [];
    await using spawned = await spawnTiny({ onSlice: (event) => events.push(event) });
    await using here = await tinyEngine('llama-tied', { microBatchTokens: 64 });
    expect(spawned.engine.model).toEqual(here.engine.model);
    expect(spawned.engine.incarnation).not.toBe(here.engine.incarnation);
    const run = async (engine: Engine, directory: string) => {
      const plan = await engine.createSession(spec);
      const shares: number[] = [];
      const first = await engine.pass('s', pass, { onProgress: (done) => shares.push(done) });
      const step = await engine.optimStep('s', adam);
      const saved = await engine.saveState('s', { version: 'v', directory });
      const weights = { type: 'version', id: 'v', directory } as const;
      await engine.loadSampler(weights);
      const sampled = await engine.sample(
        sampleRequest(prompt(9), { weights, numSamples: 3, promptLogprobs: true, topkPromptLogprobs: 2 }),
      );
      await engine.clearGradient('s');
      await engine.loadState('s', { directory, loadOptimizer: true });
      const scored = await engine.computeLogprobs({ prompt: prompt(9), weights });
      await engine.closeSession('s');
      return { plan, first, step, saved, sampled, scored, shares };
    };
    const [a, b] = [
      await run(spawned.engine, path.join(spawned.temporary.path, 'saved')),
      await run(here.engine, here.folder()),
    ];
    expect(a).toEqual(b);
    for (const [i, { logprobs }] of a.first.outputs.entries()) expectSameBits(logprobs, b.first.outputs[i]!.logprobs);
    expectSameBits(a.scored.logprobs, b.scored.logprobs);
    expect(a.shares.length).toBeGreaterThan(0);
    expect(new Set(events.map(({ type }) => type))).toEqual(new Set(['training', 'sampling']));
  });

  it('keeps code and details of errors', async () => {
    await using spawned = await spawnTiny();
    const { engine } = spawned;
    const unknown = await rejection(engine.pass('nobody', pass));
    expect(LoopwrightError.isInstance(unknown)).toBe(true);
    expect(unknown).toMatchObject({ code: 'unknown_session' });
    expect(await rejection(engine.sample(sampleRequest([1, 300])))).toMatchObject({
      code: 'invalid_argument',
      details: { field: 'prompt[1]', expected: 'a token id from 0 to 299', got: '300' },
    });
  });

  it('does again, for a session that is made anew, what it refuses of new work for its need of memory', async () => {
    await using model = await ModelDirectory.open(tinyModelDirectory('llama-tied'));
    const { config } = model;
    const { training } = spec;
    const size = { rows: 1, length: 32, targets: 1, backward: true, form: keptForm };
    const short = microBatchBytes(config, training, size);
    const maxMemoryBytes = Math.ceil(modelBytes(config) + sessionBytes(config, training) + short);
    await using spawned = await spawnTiny({ maxMemoryBytes });
    await spawned.engine.createSession(spec);
    const larger = { ...pass, data: [datum(60)] };
    expect(await rejection(spawned.engine.pass('s', larger))).toMatchObject({ code: 'memory_limit_exceeded' });
    expect((await spawned.engine.pass('s', larger, { isRepeat: true })).outputs).toHaveLength(1);
  });

  it('is cancelled by a signal, with the reason that was given, and goes on with the rest', async () => {
    await using spawned = await spawnTiny();
    const { engine } = spawned;
    await engine.createSession(spec);
    const controller = new AbortController();
    const reason = new Error('enough');
    const cancelled = engine.pass('s', long, { signal: controller.signal, onProgress: () => controller.abort(reason) });
    expect(await rejection(cancelled)).toBe(reason);
    expect((await engine.optimStep('s', adam)).gradNorm).toBe(0);
    expect(await rejection(engine.pass('s', pass, { signal: AbortSignal.abort(reason) }))).toBe(reason);
    const sampling = new AbortController();
    const sampled = rejection(
      engine.sample(sampleRequest(prompt(4), { numSamples: 100, maxTokens: 500 }), { signal: sampling.signal }),
    );
    sampling.abort(reason);
    expect(await sampled).toBe(reason);
    expect((await engine.sample(sampleRequest(prompt(4)))).sequences).toHaveLength(1);
    expect(spawned.exits).toEqual([]);
  });

  it('goes on from the snapshot of a process that was killed, bit for bit', async () => {
    await using first = await spawnTiny();
    const plan = await first.engine.createSession(spec);
    await first.engine.pass('s', pass);
    const directory = path.join(first.temporary.path, 'snapshot');
    const taken = await first.engine.snapshot('s', { directory, metadata: 'operation 1' });
    await first.engine.pass('s', pass);
    const { weightsFingerprint } = await first.engine.optimStep('s', adam);
    for (const pid of await childPids(first.temporary.path)) process.kill(pid, 'SIGKILL');
    await first.exited;
    await using second = await spawnTiny();
    await second.engine.createSession(spec, { plan });
    expect(await second.engine.restore('s', { directory })).toEqual(taken);
    expect(taken).toMatchObject({ step: 0, pendingPasses: 1, metadata: 'operation 1' });
    await second.engine.pass('s', pass);
    expect((await second.engine.optimStep('s', adam)).weightsFingerprint).toBe(weightsFingerprint);
  });

  it('puts a session without work on the disk, tells of it, and goes on with the same bits', async () => {
    const events: SwapEvent[] = [];
    let told = () => {};
    const isOut = new Promise<void>((resolve) => {
      told = resolve;
    });
    await using spawned = await spawnTiny({
      swapAfterMs: 0,
      onSwap: (event) => {
        events.push(event);
        if (event.type === 'swap-out') told();
      },
    });
    await using alone = await tinyEngine('llama-tied', { microBatchTokens: 64, swapAfterMs: null });
    for (const engine of [spawned.engine, alone.engine]) await engine.createSession(spec);
    await isOut;
    const [step, expected] = await Promise.all(
      [spawned.engine, alone.engine].map(async (engine) => {
        await engine.pass('s', pass);
        return engine.optimStep('s', adam);
      }),
    );
    expect(step).toEqual(expected);
    expect(events.slice(0, 2)).toMatchObject([
      { type: 'swap-out', session: 's', sizeBytes: expect.any(Number) },
      { type: 'swap-in', session: 's' },
    ]);
  });

  it('that is killed fails every call, says so once, and refuses later ones', async () => {
    await using spawned = await spawnTiny();
    const { engine } = spawned;
    await engine.createSession(spec);
    const calls = [
      rejection(engine.pass('s', long)),
      rejection(engine.sample(sampleRequest(prompt(4), { maxTokens: 500 }))),
    ];
    const [pid, ...others] = await childPids(spawned.temporary.path);
    expect(others).toEqual([]);
    process.kill(pid!, 'SIGKILL');
    for (const call of calls) expect(await call).toMatchObject({ code: 'engine_failed', retryable: true });
    await spawned.exited;
    expect(spawned.exits).toMatchObject([{ code: 'engine_failed' }]);
    expect(spawned.exits[0]!.message).toContain('SIGKILL');
    expect(await rejection(engine.optimStep('s', adam))).toMatchObject({ code: 'engine_failed' });
    await engine[Symbol.asyncDispose]();
    expect(spawned.exits).toHaveLength(1);
  });

  it('ends when it is closed, twice without harm, and nobody is told that it ended', async () => {
    const spawned = await spawnTiny();
    const { engine } = spawned;
    const folder = spawned.temporary.path;
    expect(await childPids(folder)).toHaveLength(1);
    const call = rejection(engine.sample(sampleRequest(prompt(4), { numSamples: 100, maxTokens: 500 })));
    await Promise.all([engine[Symbol.asyncDispose](), engine[Symbol.asyncDispose]()]);
    await engine[Symbol.asyncDispose]();
    expect(await call).toMatchObject({ code: 'engine_failed' });
    expect(await rejection(engine.sample(sampleRequest(prompt(4))))).toMatchObject({ code: 'disposed' });
    expect(await childPids(folder)).toEqual([]);
    expect(spawned.exits).toEqual([]);
    await spawned[Symbol.asyncDispose]();
  });

  it('is not there for an unknown model, with the error of loading, and nobody is told that it ended', async () => {
    await using temporary = await temporaryDirectory();
    const exits: LoopwrightError[] = [];
    const directory = path.join(temporary.path, 'none');
    const options = { entry, cacheDirectory: temporary.path, onExit: (error: LoopwrightError) => exits.push(error) };
    const error = await rejection(spawnEngine({ id: 'none', directory }, options));
    expect(error).toMatchObject({ code: 'unknown_model', details: { field: directory } });
    const controller = new AbortController();
    const loading = spawnEngine(
      { id: 'llama-tied', directory: tinyModelDirectory('llama-tied') },
      { ...options, signal: controller.signal },
    );
    controller.abort(new Error('never mind'));
    expect(await rejection(loading)).toMatchObject({ message: 'never mind' });
    const short = path.join(temporary.path, 'short.mjs');
    await writeFile(short, 'process.exit(3);');
    const ended = spawnEngine({ id: 'none', directory }, { ...options, entry: pathToFileURL(short) });
    expect(await rejection(ended)).toMatchObject({
      code: 'engine_failed',
      message: expect.stringContaining('exit code 3'),
    });
    expect(exits).toEqual([]);
  });
});

describe('the package', () => {
  it('starts the compiled entry by default, as users get it', async () => {
    await using temporary = await temporaryDirectory();
    const script = `
      const { spawnEngine } = await import('@loopwright/engine/local');
      const engine = await spawnEngine(
        { id: 'tiny', directory: ${JSON.stringify(tinyModelDirectory('llama-tied'))} },
        { threads: 1, cacheDirectory: process.argv[1] });
      console.log(engine.model.vocabSize);
      await engine[Symbol.asyncDispose]();`;
    const folder = fileURLToPath(new URL('../../../', import.meta.url));
    const args = ['--input-type=module', '-e', script, temporary.path];
    expect(
      execFileSync(process.execPath, args, { cwd: folder, encoding: 'utf8', env: { PATH: process.env.PATH } }).trim(),
    ).toBe('300');
  });
});
