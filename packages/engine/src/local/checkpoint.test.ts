import { cp, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { SessionSpec, TrainingSpec } from '@loopwright/protocol';
import { expectClose, expectSameBits, rejection, tolerances } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import type { Engine } from '../engine.js';
import { adam, base, crossEntropy, datum, prompt, sampleRequest, tinyEngine } from './testing/tiny-engine.js';

const lora: TrainingSpec = { type: 'lora', rank: 4, alpha: 8, targetModules: ['q_proj', 'v_proj', 'down_proj'] };
const session = (name: string, training: TrainingSpec = lora, seed = 1): SessionSpec => ({
  name,
  baseModel: 'llama-tied',
  training,
  seed,
});

async function train(engine: Engine, name: string, steps: readonly number[]): Promise<void> {
  for (const step of steps) {
    await engine.pass(name, {
      type: 'forward-backward',
      data: [datum(20, step), datum(11, step + 50)],
      loss: crossEntropy,
    });
    await engine.optimStep(name, { ...adam, learningRate: 0.01, weightDecay: 0.1 });
  }
}

async function logprobs(engine: Engine, name: string): Promise<Float32Array> {
  const result = await engine.pass(name, { type: 'forward', data: [datum(40, 7)], loss: crossEntropy });
  return result.outputs[0]!.logprobs;
}

describe.each([
  ['an adapter', lora],
  ['every weight', { type: 'full' }],
] as const)('training %s', (_, training) => {
  it('goes on from a saved state bit for bit, with its optimizer; without, it differs', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    await engine.createSession(session('a', training));
    await train(engine, 'a', [1, 2, 3]);
    const directory = test.folder();
    const { files } = await engine.saveState('a', { version: 'v', directory });
    expect((await readdir(directory)).sort()).toEqual([...files].sort());
    // The session goes on undisturbed by the save.
    await train(engine, 'a', [4, 5]);

    await using other = await tinyEngine('llama-tied');
    await other.engine.createSession(session('b', training, 99));
    await other.engine.loadState('b', { directory, loadOptimizer: true });
    await train(other.engine, 'b', [4, 5]);
    expectSameBits(await logprobs(other.engine, 'b'), await logprobs(engine, 'a'));

    await other.engine.createSession(session('c', training, 99));
    await other.engine.loadState('c', { directory, loadOptimizer: false });
    await train(other.engine, 'c', [4, 5]);
    const [withOut, withIt] = [await logprobs(other.engine, 'c'), await logprobs(engine, 'a')];
    expect(withOut.some((value, i) => Math.abs(value - withIt[i]!) > 1e-3)).toBe(true);
    const zero = { ...adam, learningRate: 1e-9 };
    expect((await other.engine.optimStep('b', zero)).step).toBe(6);
    expect((await other.engine.optimStep('c', zero)).step).toBe(3);
  });

  it('is sampled from its saved version; later steps change neither that nor the base', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    const scored = async (weights: Parameters<Engine['loadSampler']>[0], from = engine) =>
      (await from.computeLogprobs({ prompt: prompt(41, 7), weights })).logprobs.subarray(1);
    const before = await scored(base);
    await engine.createSession(session('a', training));
    await train(engine, 'a', [1, 2]);
    const directory = test.folder();
    await engine.saveWeights('a', { version: 'v1', directory, merge: false });
    const version = { type: 'version', id: 'v1', directory } as const;
    const atSave = await logprobs(engine, 'a');
    expectClose(await scored(version), atSave, tolerances.trainerVersusSampler);
    const sampled = await engine.sample(sampleRequest(prompt(9), { weights: version, maxTokens: 20 }));
    await train(engine, 'a', [3, 4]);
    expectClose(await scored(version), atSave, tolerances.trainerVersusSampler);
    expectSameBits(await scored(base), before);
    const again = await engine.sample(sampleRequest(prompt(9), { weights: version, maxTokens: 20 }));
    expectSameBits(again.sequences[0]!.logprobs, sampled.sequences[0]!.logprobs);
    // Another process reads it from disk to the same bits.
    await using other = await tinyEngine('llama-tied');
    expectSameBits(await scored(version, other.engine), await scored(version));
    const read = await other.engine.sample(sampleRequest(prompt(9), { weights: version, maxTokens: 20 }));
    expectSameBits(read.sequences[0]!.tokens, sampled.sequences[0]!.tokens);
    expectSameBits(read.sequences[0]!.logprobs, sampled.sequences[0]!.logprobs);
  });
});

describe('a merged model', () => {
  it('is a model of its own that gives the log-probs of the adapter', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    await engine.createSession(
      session('a', { ...lora, targetModules: ['q_proj', 'up_proj', 'lm_head'] } as TrainingSpec),
    );
    await train(engine, 'a', [1, 2, 3]);
    const directory = test.folder();
    const { files } = await engine.saveWeights('a', { version: 'v', directory, merge: true });
    expect(files).toContain('merged/config.json');
    await using merged = await tinyEngine('llama-tied', { directory: path.join(directory, 'merged') });
    const [a, b] = [
      await engine.computeLogprobs({ prompt: prompt(30), weights: { type: 'version', id: 'v', directory } }),
      await merged.engine.computeLogprobs({ prompt: prompt(30), weights: base }),
    ];
    expectClose(b.logprobs.subarray(1), a.logprobs.subarray(1), tolerances.trainerVersusSampler);
  });
});

describe('a load that cannot be', () => {
  it('of another rank is refused by a session that has trained, and changes nothing', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    await engine.createSession(session('wide', { ...lora, rank: 8 } as TrainingSpec));
    const directory = test.folder();
    await engine.saveState('wide', { version: 'v', directory });
    await engine.createSession(session('a'));
    await train(engine, 'a', [1]);
    await engine.pass('a', { type: 'forward-backward', data: [datum(9)], loss: crossEntropy });
    const before = await logprobs(engine, 'a');
    const load = engine.loadState('a', { directory, loadOptimizer: true });
    expect(await rejection(load)).toMatchObject({ code: 'checkpoint_mismatch' });
    expectSameBits(await logprobs(engine, 'a'), before);
    // The pending gradient is still there.
    expect((await engine.optimStep('a', adam)).gradNorm).toBeGreaterThan(0);
  });

  it('of a half-written or missing directory is refused, and changes nothing', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    await engine.createSession(session('a'));
    await train(engine, 'a', [1]);
    const whole = test.folder();
    await engine.saveState('a', { version: 'v', directory: whole });
    await train(engine, 'a', [2]);
    // Untrained, so that it would take another shape.
    await engine.createSession(session('fresh', { ...lora, rank: 2 } as TrainingSpec));
    const before = [await logprobs(engine, 'a'), await logprobs(engine, 'fresh')];
    const damages: [string, (directory: string) => Promise<void>, string][] = [
      ['no directory', (directory) => rm(directory, { recursive: true }), 'unknown_version'],
      ['no config', (directory) => rm(path.join(directory, 'adapter_config.json')), 'model_invalid'],
      ['no weights', (directory) => rm(path.join(directory, 'adapter_model.safetensors')), 'model_invalid'],
      [
        'cut weights',
        (directory) => writeFile(path.join(directory, 'adapter_model.safetensors'), 'short'),
        'model_invalid',
      ],
      ['no moments', (directory) => rm(path.join(directory, 'optimizer.safetensors')), 'model_invalid'],
      ['no trainer state', (directory) => rm(path.join(directory, 'trainer_state.json')), 'model_invalid'],
      [
        'a broken trainer state',
        (directory) => writeFile(path.join(directory, 'trainer_state.json'), '{"step":'),
        'model_invalid',
      ],
    ];
    for (const [what, damage, code] of damages) {
      const directory = test.folder();
      await cp(whole, directory, { recursive: true });
      await damage(directory);
      for (const name of ['a', 'fresh']) {
        const error = await rejection(engine.loadState(name, { directory, loadOptimizer: true }));
        expect(error, what).toMatchObject({ code });
      }
      if (what.includes('trainer') || what.includes('moments')) continue;
      const scoring = engine.computeLogprobs({ prompt: prompt(5), weights: { type: 'version', id: what, directory } });
      expect(await rejection(scoring), what).toMatchObject({ code });
    }
    expectSameBits(await logprobs(engine, 'a'), before[0]!);
    expectSameBits(await logprobs(engine, 'fresh'), before[1]!);
    // A version that could not be read is looked for again, not remembered as missing.
    const late = { type: 'version', id: 'no directory', directory: whole } as const;
    expect((await engine.computeLogprobs({ prompt: prompt(5), weights: late })).logprobs).toHaveLength(5);
  });

  it('of the other training type, or of another model, is refused', async () => {
    await using test = await tinyEngine('llama-tied');
    await using other = await tinyEngine('llama-untied');
    const { engine } = test;
    await engine.createSession(session('lora'));
    await engine.createSession(session('full', { type: 'full' }));
    await other.engine.createSession(session('untied', { type: 'full' }));
    const folders = [test.folder(), test.folder(), other.folder()] as const;
    await engine.saveState('lora', { version: 'a', directory: folders[0] });
    await engine.saveState('full', { version: 'b', directory: folders[1] });
    await other.engine.saveState('untied', { version: 'c', directory: folders[2] });
    const before = await logprobs(engine, 'full');
    for (const [name, directory] of [
      ['lora', folders[1]],
      ['full', folders[0]],
      ['full', folders[2]],
    ] as const) {
      const error = await rejection(engine.loadState(name, { directory, loadOptimizer: false }));
      expect(error).toMatchObject({ code: 'checkpoint_mismatch' });
    }
    expectSameBits(await logprobs(engine, 'full'), before);
  });

  it('with a signal that has fired does nothing', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    await engine.createSession(session('a'));
    const directory = test.folder();
    const signal = AbortSignal.abort(new Error('stop'));
    expect(await rejection(engine.saveState('a', { version: 'v', directory, signal }))).toMatchObject({
      message: 'stop',
    });
    await engine.saveState('a', { version: 'v', directory });
    expect(await rejection(engine.loadState('a', { directory, loadOptimizer: true, signal }))).toMatchObject({
      message: 'stop',
    });
  });
});

describe('whole models as versions', () => {
  it('are let go one after another while they are sampled from, leaving no copy behind', async () => {
    await using test = await tinyEngine('llama-tied');
    const { engine } = test;
    await engine.createSession(session('a', { type: 'full' }));
    const versions: { readonly type: 'version'; readonly id: string; readonly directory: string }[] = [];
    for (const step of [1, 2, 3, 4]) {
      await train(engine, 'a', [step]);
      const directory = test.folder();
      await engine.saveWeights('a', { version: `v${step}`, directory, merge: false });
      versions.push({ type: 'version', id: `v${step}`, directory });
    }
    const sample = (weights: (typeof versions)[number]) =>
      engine.sample(sampleRequest(prompt(5), { weights, maxTokens: 60, numSamples: 3 }));
    const alone = [];
    for (const version of versions) alone.push(await sample(version));
    const together = await Promise.all([...versions, ...versions].map(sample));
    for (const [i, { sequences }] of together.entries())
      for (const [j, { logprobs: got }] of sequences.entries())
        expectSameBits(got, alone[i % 4]!.sequences[j]!.logprobs, `version ${i % 4}`);
    // Closing happens between slices; another call waits for its turn behind it.
    await engine.computeLogprobs({ prompt: prompt(5), weights: base });
    const copies = await readdir(path.join(path.dirname(versions[0]!.directory), 'cache/versions'));
    expect(copies.length).toBeLessThanOrEqual(2);
  });
});
