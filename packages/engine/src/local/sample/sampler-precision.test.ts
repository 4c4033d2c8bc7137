/** Sampling by weights that are rounded to int8: tested where the processor's kernels are exact, refused elsewhere. */
import { mkdir } from 'node:fs/promises';
import { defaultTargetModules, type SamplerPath, targetModules } from '@loopwright/protocol';
import { rejection } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { requireExactInt8, requirePrecision } from '../ort/int8-kernels.js';
import {
  adam,
  base,
  crossEntropy,
  datum,
  prompt,
  sampleRequest,
  type TestEngine,
  tinyEngine,
} from '../testing/tiny-engine.js';

const isExact = await requireExactInt8().then(
  () => true,
  () => false,
);
const int8 = { samplerPrecision: 'int8' } as const;
/** Nats on average: twice what was seen at most of these models of random weights. */
const off = 0.2;
const models = ['llama-tied', 'llama-untied', 'qwen2', 'qwen3'] as const;

/** A version whose adapter has moved; the same numbers whatever the engine samples in. */
async function version(
  { engine, folder }: TestEngine,
  samplerPath: SamplerPath,
  modules: readonly (typeof targetModules)[number][] = defaultTargetModules,
) {
  const training = { type: 'lora', rank: 8, alpha: 16, targetModules: modules, samplerPath } as const;
  await engine.createSession({ name: samplerPath, baseModel: 'tiny', training, seed: 3 });
  await engine.pass(samplerPath, { type: 'forward-backward', data: [datum(40)], loss: crossEntropy });
  await engine.optimStep(samplerPath, { ...adam, learningRate: 0.02 });
  const directory = folder();
  await mkdir(directory);
  await engine.saveWeights(samplerPath, { version: samplerPath, directory, merge: false });
  return { type: 'version', id: samplerPath, directory } as const;
}

/** Of sampled tokens: how far their logprobs are from what scoring them gives. */
async function differences({ engine }: TestEngine, request: ReturnType<typeof sampleRequest>): Promise<number[]> {
  const { sequences } = await engine.sample(request);
  const found = sequences.map(async ({ tokens, logprobs }) => {
    const whole = Int32Array.from([...request.prompt, ...tokens]);
    const scored = await engine.computeLogprobs({ prompt: whole, weights: request.weights });
    return Array.from(logprobs, (logprob, i) => Math.abs(logprob - scored.logprobs[request.prompt.length + i]!));
  });
  return (await Promise.all(found)).flat();
}

const mean = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0) / numbers.length;

describe.runIf(isExact)('sampling in int8', () => {
  it.each(models)('draws from probabilities that are near those of float32, and others, on %s', async (model) => {
    await using test = await tinyEngine(model, int8);
    const found = await differences(test, sampleRequest(prompt(12), { numSamples: 8, maxTokens: 30 }));
    expect(found.length).toBeGreaterThan(30);
    expect(mean(found)).toBeGreaterThan(1e-4); // more than float32 is ever off by
    expect(mean(found)).toBeLessThan(off);
  });

  it('tells how far it is off, from a measurement as it is loaded', async () => {
    await using test = await tinyEngine('llama-tied', int8);
    const { precisionEffect } = test.engine;
    expect(precisionEffect!.tokens).toBe(5 * 64);
    expect(precisionEffect!.meanDifference).toBeGreaterThan(1e-4);
    expect(precisionEffect!.meanDifference).toBeLessThan(off);
    expect(precisionEffect!.largestDifference).toBeGreaterThan(precisionEffect!.meanDifference);
    expect(precisionEffect!.sameLikeliest).toBeGreaterThan(0.5);
    expect(precisionEffect!.sameLikeliest).toBeLessThanOrEqual(1);
  });

  it('scores, prefills and trains as float32 does, bit for bit', async () => {
    await using rounded = await tinyEngine('llama-untied', int8);
    await using plain = await tinyEngine('llama-untied');
    expect(plain.engine.precisionEffect).toBeUndefined();
    const training = { type: 'lora', rank: 4, alpha: 8, targetModules: defaultTargetModules } as const;
    const results = await Promise.all(
      [rounded, plain].map(async ({ engine }) => {
        const plan = await engine.createSession({ name: 's', baseModel: 'tiny', training, seed: 1 });
        const pass = await engine.pass('s', { type: 'forward-backward', data: [datum(30)], loss: crossEntropy });
        const { weightsFingerprint } = await engine.optimStep('s', adam);
        const scored = await engine.computeLogprobs({ prompt: prompt(40), weights: base });
        return { precision: plan.samplerPrecision, pass: pass.outputs, weightsFingerprint, scored };
      }),
    );
    const [first, second] = results;
    expect([first!.precision, second!.precision]).toEqual(['int8', 'float32']);
    expect({ ...first, precision: 0 }).toEqual({ ...second, precision: 0 });
  });

  it.each([
    ['llama-untied', 1],
    ['qwen2', 2],
  ] as const)(
    'gives the same bits alone, in a full batch and after a restart, on %s with %i threads',
    async (model, threads) => {
      await using test = await tinyEngine(model, { ...int8, threads });
      const ways = [
        sampleRequest(prompt(9), { maxTokens: 20 }),
        sampleRequest(prompt(9), { maxTokens: 20, temperature: 0 }),
        sampleRequest(prompt(9), { maxTokens: 20, temperature: 0.7 }),
        sampleRequest(prompt(9), { maxTokens: 20, topK: 5 }),
      ];
      const alone = [];
      for (const request of ways) alone.push(await test.engine.sample(request));
      const others = [3, 17, 40].map((length) => sampleRequest(prompt(length, 5), { numSamples: 11, maxTokens: 20 }));
      const together = await Promise.all([...ways, ...others].map((request) => test.engine.sample(request)));
      expect(together.slice(0, ways.length)).toEqual(alone);
      await using later = await tinyEngine(model, { ...int8, threads });
      expect(await Promise.all(ways.map((request) => later.engine.sample(request)))).toEqual(alone);
    },
  );

  it.each([
    ['apart', defaultTargetModules],
    ['apart', targetModules],
    ['merged', defaultTargetModules],
  ] as const)('takes an adapter %s, near float32 and the same alone as among others', async (samplerPath, modules) => {
    await using test = await tinyEngine('llama-untied', int8);
    const weights = await version(test, samplerPath, modules);
    const request = sampleRequest(prompt(9), { weights, numSamples: 4, maxTokens: 20 });
    const found = await differences(test, request);
    expect(mean(found)).toBeGreaterThan(1e-4);
    expect(mean(found)).toBeLessThan(off);
    const alone = await test.engine.sample(request);
    const ofBase = await test.engine.sample({ ...request, weights: base });
    expect(alone.sequences[0]!.logprobs).not.toEqual(ofBase.sequences[0]!.logprobs);
    const other = sampleRequest(prompt(30), { numSamples: 5, maxTokens: 20 });
    const [among] = await Promise.all([test.engine.sample(request), test.engine.sample(other)]);
    expect(among).toEqual(alone);
  });

  it('samples from the weights of a full training, rounded as well', async () => {
    await using test = await tinyEngine('llama-tied', int8);
    const { engine } = test;
    await engine.createSession({ name: 'full', baseModel: 'tiny', training: { type: 'full' }, seed: 3 });
    await engine.pass('full', { type: 'forward-backward', data: [datum(40)], loss: crossEntropy });
    await engine.optimStep('full', adam);
    const directory = test.folder();
    await engine.saveWeights('full', { version: 'full', directory, merge: false });
    const weights = { type: 'version', id: 'full', directory } as const;
    const found = await differences(test, sampleRequest(prompt(9), { weights, numSamples: 4, maxTokens: 20 }));
    expect(mean(found)).toBeGreaterThan(1e-4);
    expect(mean(found)).toBeLessThan(off);
  });
});

it.runIf(!isExact)('is refused where the kernels are not exact', async () => {
  expect(await rejection(tinyEngine('llama-tied', int8))).toMatchObject({ code: 'unsupported_host' });
});

it('is for the processor alone', async () => {
  expect(await rejection(requirePrecision('int8', 'cuda'))).toMatchObject({
    code: 'invalid_argument',
    details: { field: 'samplerPrecision', expected: 'float32 on cuda', got: 'int8' },
  });
});
