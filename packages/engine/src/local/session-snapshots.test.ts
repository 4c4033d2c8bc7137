import { readdir, readFile, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { SessionSpec, TrainingSpec } from '@loopwright/protocol';
import { expectSameBits, rejection } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import type { Engine } from '../engine.js';
import { readSessionSnapshot, readSnapshotInfo, writeSessionSnapshot } from '../formats/session-snapshot.js';
import { snapshotSession } from './session-snapshots.js';
import { tinyBase } from './testing/tiny-base.js';
import { adam, crossEntropy, datum, sampleRequest, tinyEngine } from './testing/tiny-engine.js';
import { finish, forwardBackward, newSession } from './testing/training.js';

const lora: TrainingSpec = { type: 'lora', rank: 4, alpha: 8, targetModules: ['q_proj', 'v_proj', 'down_proj'] };
const spec = (name: string, training: TrainingSpec = lora, seed = 1): SessionSpec => {
  return { name, baseModel: 'llama-tied', training, seed };
};
const data = (seed: number) => [datum(20, seed), datum(11, seed + 50)];
const pass = (engine: Engine, name: string, seed: number) =>
  engine.pass(name, { type: 'forward-backward', data: data(seed), loss: crossEntropy });
const step = (engine: Engine, name: string) =>
  engine.optimStep(name, { ...adam, learningRate: 0.01, weightDecay: 0.1, gradClipNorm: 0.5 });

/** Two steps, and a gradient of two passes that waits for a third. */
async function trainHalfWay(engine: Engine, name: string): Promise<void> {
  for (const seed of [1, 2]) {
    await pass(engine, name, seed);
    await step(engine, name);
  }
  await pass(engine, name, 3);
  await pass(engine, name, 4);
}

/** The rest of the way: what the session comes to in every bit. */
async function trainOn(engine: Engine, name: string): Promise<unknown> {
  const { metrics } = await pass(engine, name, 5);
  return [metrics, await step(engine, name), await pass(engine, name, 6), await step(engine, name)];
}

async function undisturbed(training: TrainingSpec): Promise<unknown> {
  await using test = await tinyEngine('llama-tied');
  await test.engine.createSession(spec('u', training));
  await trainHalfWay(test.engine, 'u');
  return await trainOn(test.engine, 'u');
}

describe.each([
  ['an adapter', lora],
  ['every weight', { type: 'full' }],
] as const)('a session that trains %s', (_, training) => {
  it('goes on from a snapshot in another engine bit for bit, its pending gradient included', async () => {
    const expected = await undisturbed(training);
    await using test = await tinyEngine('llama-tied');
    const plan = await test.engine.createSession(spec('a', training));
    await trainHalfWay(test.engine, 'a');
    const directory = test.folder();
    const taken = await test.engine.snapshot('a', { directory, metadata: '{"operation":"6"}' });
    expect(taken).toMatchObject({ step: 2, pendingPasses: 2, metadata: '{"operation":"6"}' });
    expect(await readSnapshotInfo(directory)).toEqual(taken);
    expect(await trainOn(test.engine, 'a')).toEqual(expected);

    await using other = await tinyEngine('llama-tied');
    await other.engine.createSession(spec('b', training), { plan });
    expect(await other.engine.restore('b', { directory })).toEqual(taken);
    expect(await trainOn(other.engine, 'b')).toEqual(expected);
  });
});

describe('a snapshot', () => {
  it('is the same after passes that were cancelled or failed', async () => {
    await using test = await tinyEngine('llama-tied', { microBatchTokens: 32 });
    const { engine } = test;
    await engine.createSession(spec('a'));
    await trainHalfWay(engine, 'a');
    const [before, after] = [test.folder(), test.folder()];
    await engine.snapshot('a', { directory: before });
    const abort = new AbortController();
    const cancelled = engine.pass(
      'a',
      { type: 'forward-backward', data: [...data(7), ...data(8)], loss: crossEntropy },
      { signal: abort.signal, onProgress: () => abort.abort() },
    );
    await rejection(cancelled);
    const weights = { ...datum(20).weights!, data: new Float32Array(20).fill(Number.POSITIVE_INFINITY) };
    const infinite = { type: 'forward-backward', data: [{ ...datum(20), weights }], loss: crossEntropy } as const;
    await rejection(engine.pass('a', infinite));
    await engine.snapshot('a', { directory: after });
    expect(await contents(after)).toEqual(await contents(before));
  });

  it('of a session that has done nothing, or cleared its gradient, is restored as such', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    const [fresh, cleared] = [test.folder(), test.folder()];
    await engine.createSession(spec('a'));
    expect(await engine.snapshot('a', { directory: fresh })).toMatchObject({ step: 0, pendingPasses: 0, metadata: '' });
    await pass(engine, 'a', 1);
    await engine.clearGradient('a');
    expect(await engine.snapshot('a', { directory: cleared })).toMatchObject({ step: 0, pendingPasses: 0 });
    await engine.createSession(spec('b'));
    for (const directory of [cleared, fresh]) {
      await pass(engine, 'b', 9);
      await engine.restore('b', { directory });
      expect((await step(engine, 'b')).gradNorm).toBe(0);
    }
  });

  it('holds what there was when it was called, while passes go on and a step waits for it', async () => {
    await using model = await tinyBase('llama-tied');
    await using folders = await tinyEngine('llama-tied');
    const [session, twin] = [newSession(model.base), newSession(model.base)];
    for (const each of [session, twin]) await forwardBackward(each, data(1), crossEntropy);
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const [slow, quick] = [folders.folder(), folders.folder()];
    const taking = snapshotSession(session, {
      directory: slow,
      metadata: '',
      writeBytes: async (handle, parts) => {
        await held;
        await handle.writev([...parts]);
      },
    });
    await forwardBackward(session, data(2), crossEntropy);
    let hasStepped = false;
    const stepping = session.unread().then(() => {
      hasStepped = true;
      return finish(session.optimStep(adam));
    });
    await new Promise(setImmediate);
    expect(hasStepped).toBe(false);
    release();
    await Promise.all([taking, stepping]);
    await snapshotSession(twin, { directory: quick, metadata: '' });
    expect(await contents(slow)).toEqual(await contents(quick));
    await forwardBackward(twin, data(2), crossEntropy);
    await finish(twin.optimStep(adam));
    for (const { name, values } of twin.parameters.values())
      expectSameBits(session.parameters.get(name)!.values, values, name);
  });

  it('takes the shape that the session took from what it loaded', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    const [saved, directory] = [test.folder(), test.folder()];
    await engine.createSession(spec('a', { ...lora, rank: 6 }));
    await trainHalfWay(engine, 'a');
    await engine.saveState('a', { version: 'v', directory: saved });
    await engine.createSession(spec('b'));
    await engine.loadState('b', { directory: saved, loadOptimizer: true });
    await pass(engine, 'b', 4);
    await engine.snapshot('b', { directory });
    const expected = await trainOn(engine, 'b');
    await engine.createSession(spec('c'));
    await engine.restore('c', { directory });
    expect(await trainOn(engine, 'c')).toEqual(expected);
  });

  it('lets sampling go on while it is taken', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    await engine.createSession(spec('a'));
    await pass(engine, 'a', 1);
    const sampling = engine.sample(sampleRequest([5, 6, 7], { maxTokens: 30 }));
    await engine.snapshot('a', { directory: test.folder() });
    expect((await sampling).sequences).toHaveLength(1);
  });

  it('that meets a full disk, or is cancelled, leaves the one before it whole', async () => {
    await using model = await tinyBase('llama-tied');
    await using folders = await tinyEngine('llama-tied');
    const session = newSession(model.base);
    const directory = folders.folder();
    const origin = { spec: session.created, plan: session.plan };
    await snapshotSession(session, { directory, metadata: 'old' });
    const before = await contents(directory);
    await forwardBackward(session, data(1), crossEntropy);
    const again = (options: object) => rejection(snapshotSession(session, { directory, metadata: 'new', ...options }));
    const noSpace = async () => {
      throw Object.assign(new Error('no space'), { code: 'ENOSPC' });
    };
    expect(await again({ writeBytes: noSpace })).toMatchObject({ code: 'disk_full' });
    expect(await again({ freeBytes: async () => 100 })).toMatchObject({ code: 'disk_full' });
    const abort = new AbortController();
    const cancel = async () => abort.abort();
    expect(await again({ writeBytes: cancel, signal: abort.signal })).toMatchObject({ code: 'cancelled' });
    expect(await readdir(directory)).toEqual(['session.safetensors']);
    expect(await contents(directory)).toEqual(before);
    expect((await readSessionSnapshot(directory, { origin })).facts.metadata).toBe('old');
  });

  it('that is missing, cut, changed in a bit, or of another format is refused, and the session stays as it was', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    await engine.createSession(spec('a'));
    await trainHalfWay(engine, 'a');
    const [kept, directory] = [test.folder(), test.folder()];
    await engine.snapshot('a', { directory: kept });
    const restored = () => rejection(engine.restore('a', { directory }));
    expect(await restored()).toMatchObject({ code: 'unknown_version' });
    expect(await rejection(readSnapshotInfo(directory))).toMatchObject({ code: 'unknown_version' });

    await engine.snapshot('a', { directory });
    const file = path.join(directory, 'session.safetensors');
    const whole = await readFile(file);
    await truncate(file, whole.length - 1);
    expect(await restored()).toMatchObject({ code: 'model_invalid' });
    const bit = Buffer.from(whole);
    bit[whole.length - 5]! ^= 1;
    await writeFile(file, bit);
    expect(await restored()).toMatchObject({
      code: 'model_invalid',
      details: { field: expect.stringContaining('digest') },
    });
    const steps = Buffer.from(whole.toString('latin1').replace('\\"step\\":2', '\\"step\\":3'), 'latin1');
    expect(steps.equals(whole)).toBe(false);
    await writeFile(file, steps);
    expect(await restored()).toMatchObject({
      code: 'model_invalid',
      details: { field: expect.stringContaining('digest') },
    });
    const version = '"loopwright_session_snapshot":"';
    await writeFile(file, Buffer.from(whole.toString('latin1').replace(`${version}1`, `${version}9`), 'latin1'));
    expect(await restored()).toMatchObject({ code: 'checkpoint_mismatch' });

    const after = test.folder();
    await engine.snapshot('a', { directory: after });
    expect(await contents(after)).toEqual(await contents(kept));
  });

  it('of another seed, rank, model or plan is refused with the name of what differs', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    const plan = await engine.createSession(spec('a'));
    const directory = test.folder();
    await engine.snapshot('a', { directory });
    const others: [string, SessionSpec, number][] = [
      ['spec.seed', spec('seed', lora, 2), plan.microBatchTokens],
      ['spec.training', spec('rank', { ...lora, rank: 5 }), plan.microBatchTokens],
      ['spec.baseModel', { ...spec('model'), baseModel: 'another' }, plan.microBatchTokens],
      ['plan.microBatchTokens', spec('plan'), 64],
    ];
    for (const [field, other, microBatchTokens] of others) {
      await engine.createSession(other, { plan: { ...plan, microBatchTokens } });
      const error = await rejection(engine.restore(other.name, { directory }));
      expect(error, field).toMatchObject({ code: 'checkpoint_mismatch', details: { field } });
    }
  });

  it('with arrays that do not belong to the session is refused, and the session stays as it was', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    const plan = await engine.createSession(spec('a'));
    const directory = test.folder();
    const facts = { training: lora, step: 1, pendingPasses: 0, hasTrained: true, metadata: '' };
    const origin = { spec: spec('a'), plan };
    for (const [name, code] of [
      ['value.layers.0.q_proj.lora_A', 'checkpoint_mismatch'],
      ['elsewhere', 'model_invalid'],
    ] as const) {
      const tensors = [{ name, shape: [3], data: new Float32Array(3) }];
      await writeSessionSnapshot(directory, { origin, facts, tensors });
      expect(await rejection(engine.restore('a', { directory }))).toMatchObject({ code });
    }
    expect((await step(engine, 'a')).step).toBe(1);
  });
});

async function contents(directory: string): Promise<Buffer> {
  return readFile(path.join(directory, 'session.safetensors'));
}
