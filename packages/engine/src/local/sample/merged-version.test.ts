import { mkdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { defaultTargetModules, type SamplerPath, targetModules } from '@loopwright/protocol';
import { expectClose, tolerances } from '@loopwright/testkit';
import { expect, it } from 'vitest';
import type { SamplerWeights } from '../../engine.js';
import {
  adam,
  crossEntropy,
  datum,
  expectSampledAsScored,
  prompt,
  sampleRequest,
  type TestEngine,
  tinyEngine,
} from '../testing/tiny-engine.js';

/** A version of an adapter that has moved: the same numbers by either path. */
async function version(
  { engine, folder }: TestEngine,
  samplerPath: SamplerPath,
  modules: readonly (typeof targetModules)[number][] = defaultTargetModules,
): Promise<Extract<SamplerWeights, { type: 'version' }>> {
  const training = { type: 'lora', rank: 8, alpha: 16, targetModules: modules, samplerPath } as const;
  await engine.createSession({ name: samplerPath, baseModel: 'tiny', training, seed: 3 });
  await engine.pass(samplerPath, { type: 'forward-backward', data: [datum(40)], loss: crossEntropy });
  await engine.optimStep(samplerPath, { ...adam, learningRate: 0.02 });
  const directory = folder();
  await engine.saveWeights(samplerPath, { version: samplerPath, directory, merge: false });
  return { type: 'version', id: samplerPath, directory };
}

it.each([
  ['the linear layers', 'llama-untied', defaultTargetModules],
  ['a head tied to the embedding as well', 'qwen2', targetModules],
] as const)(
  'merges an adapter on %s: same log-probabilities as apart, and the plan says so',
  async (_, model, modules) => {
    await using test = await tinyEngine(model);
    const { engine } = test;
    const [apart, merged] = [await version(test, 'apart', modules), await version(test, 'merged', modules)];
    const whole = prompt(60);
    const [one, other] = [
      await engine.computeLogprobs({ prompt: whole, weights: apart }),
      await engine.computeLogprobs({ prompt: whole, weights: merged }),
    ];
    expectClose(one.logprobs.subarray(1), other.logprobs.subarray(1), tolerances.trainerVersusSampler);
    expect(one.logprobs).not.toEqual(other.logprobs); // another order of sums, so it was another computation
    await expectSampledAsScored(engine, sampleRequest(prompt(7), { weights: merged, numSamples: 3, maxTokens: 12 }));
  },
);

it('gives the same bits alone, among others and after a restart, from the file beside the adapter', async () => {
  await using test = await tinyEngine('llama-untied');
  const merged = await version(test, 'merged');
  const request = sampleRequest(prompt(9), { weights: merged, numSamples: 2, maxTokens: 20 });
  const alone = await test.engine.sample(request);
  const [among] = await Promise.all([
    test.engine.sample(request),
    test.engine.sample(sampleRequest(prompt(30), { numSamples: 5, maxTokens: 20 })),
  ]);
  expect(among).toEqual(alone);
  await using later = await tinyEngine('llama-untied');
  expect(await later.engine.sample(request)).toEqual(alone);
});

it('refuses a path that it does not know', async () => {
  await using test = await tinyEngine('llama-untied');
  const merged = await version(test, 'merged');
  const directory = test.folder();
  await mkdir(directory);
  for (const name of ['adapter_config.json', 'adapter_model.safetensors'])
    await writeFile(path.join(directory, name), await readFile(path.join(merged.directory, name)));
  await writeFile(path.join(directory, 'loopwright.json'), '{"samplerPath":"elsewhere"}');
  const weights = { type: 'version', id: 'other', directory } as const;
  await expect(test.engine.sample(sampleRequest(prompt(4), { weights }))).rejects.toThrow(
    'loopwright.json: samplerPath: expected apart or merged, got elsewhere; save the weights again',
  );
  const training = { type: 'lora', rank: 1, alpha: 1, targetModules: defaultTargetModules } as const;
  const spec = { name: 'x', baseModel: 'tiny', seed: 1, training: { ...training, samplerPath: 'both' as 'merged' } }; // not true: what is refused
  await expect(test.engine.createSession(spec)).rejects.toThrow(
    'training.samplerPath: expected apart or merged, got both',
  );
});

it('keeps its path when it takes the shape of an adapter that it loads', async () => {
  await using test = await tinyEngine('llama-untied');
  const { engine } = test;
  const apart = await version(test, 'apart');
  const state = test.folder();
  await engine.saveState('apart', { version: 'state', directory: state });
  const training = { type: 'lora', rank: 2, alpha: 2, targetModules: ['q_proj'], samplerPath: 'merged' } as const;
  const plan = await engine.createSession({ name: 'loaded', baseModel: 'tiny', training, seed: 1 });
  expect(plan.samplerPath).toBe('merged');
  await engine.loadState('loaded', { directory: state, loadOptimizer: true });
  const directory = test.folder();
  const saved = await engine.saveWeights('loaded', { version: 'again', directory, merge: false });
  expect(saved.files).toContain('loopwright.json');
  const weights = { type: 'version', id: 'again', directory } as const;
  const whole = prompt(40);
  const [one, other] = [
    await engine.computeLogprobs({ prompt: whole, weights: apart }),
    await engine.computeLogprobs({ prompt: whole, weights }),
  ];
  expectClose(one.logprobs.subarray(1), other.logprobs.subarray(1), tolerances.trainerVersusSampler);
});
