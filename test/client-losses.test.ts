/** The losses that are composed on the client, on the embedded engine: each lowers what it is to lower. */
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import {
  connect,
  distillationData,
  dpo,
  gspo,
  ipo,
  klLoss,
  kto,
  ktoData,
  orpo,
  preferenceData,
  rlDatum,
  type SamplingClient,
  sftDatum,
  simpo,
  type TrainingClient,
  withReference,
} from 'loopwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeTinyModel } from './support/tiny-model.js';

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let service: Awaited<ReturnType<typeof connect>>;
let base: SamplingClient;

beforeAll(async () => {
  folder = await temporaryDirectory();
  const model = await makeTinyModel(join(folder.path, 'model'));
  service = await connect({ dataDir: join(folder.path, 'data'), models: { tiny: model } });
  base = await service.createSamplingClient({ baseModel: 'tiny' });
});
afterAll(async () => {
  await service.close();
  await folder[Symbol.asyncDispose]();
});

const start = () => service.createLoraTrainingClient({ baseModel: 'tiny', rank: 4, seed: 2 });

const pairs = [
  { prompt: [3, 4], chosen: [5, 6, 7], rejected: [8, 9] },
  { prompt: [10, 11], chosen: [12], rejected: [13, 14, 15] },
];

/** Metrics of each call, with a step behind each but the last. */
async function train(
  training: TrainingClient,
  pass: () => ReturnType<TrainingClient['forwardBackwardCustom']>,
  steps = 6,
): Promise<Readonly<Record<string, number>>[]> {
  const metrics: Readonly<Record<string, number>>[] = [];
  for (let step = 0; step < steps; step++) {
    const future = pass();
    const update = training.optimStep({ learningRate: 5e-3, weightDecay: 0 });
    metrics.push((await future).metrics);
    await update;
  }
  return metrics;
}

test('DPO raises the margin from 0, against scores of the base model', async () => {
  await using training = await start();
  const data = await withReference(preferenceData(pairs), base);
  const metrics = await train(training, () => training.forwardBackwardCustom(data, dpo()));
  const [first, last] = [metrics[0]!, metrics.at(-1)!];
  // A fresh adapter is the base model: every margin is 0 up to the rounding of float32, and the loss log 2 a pair.
  expect(Math.abs(first['reward/margin']!)).toBeLessThan(1e-4);
  expect(first['loss/sum']).toBeCloseTo(2 * Math.LN2, 4);
  expect(last['reward/margin']).toBeGreaterThan(0.05);
  expect(last['reward/accuracy']).toBe(1);
  expect(last['reward/chosen']).toBeGreaterThan(last['reward/rejected']!);
});

test.each([
  ['ipo', ipo()],
  ['simpo', simpo()],
  ['orpo', orpo({ lambda: 1 })],
])('%s lowers its loss and orders the pairs', async (_, loss) => {
  await using training = await start();
  const data = await withReference(preferenceData(pairs), base);
  const metrics = await train(training, () => training.forwardBackwardCustom(data, loss));
  expect(metrics.at(-1)!['loss/sum']).toBeLessThan(metrics[0]!['loss/sum']!);
  expect(metrics.at(-1)!['reward/margin']).toBeGreaterThan(metrics[0]!['reward/margin']!);
  expect(metrics.at(-1)!['reward/accuracy']).toBe(1);
});

test('KTO parts what is liked from what is not, and measures how far the model has moved', async () => {
  await using training = await start();
  const examples = pairs.flatMap(({ prompt, chosen, rejected }) => [
    { prompt, completion: chosen, desirable: true },
    { prompt, completion: rejected, desirable: false },
  ]);
  const data = await withReference(ktoData(examples), base);
  const metrics = await train(training, () => training.forwardBackwardCustom(data, kto()));
  expect(metrics[0]!['loss/sum']).toBeCloseTo(4 * 0.5, 4);
  expect(metrics.at(-1)!['reward/desirable']).toBeGreaterThan(metrics.at(-1)!['reward/undesirable']! + 0.05);
  expect(metrics.at(-1)!['loss/sum']).toBeLessThan(metrics[0]!['loss/sum']!);
  expect(metrics.at(-1)!['kl/mismatched']).toBeGreaterThanOrEqual(0);
});

test('GSPO raises sequences with an advantage until the clip holds them', async () => {
  await using training = await start();
  const sampler = await training.saveWeightsAndGetSamplingClient();
  const prompt = [3, 4];
  const { sequences } = await sampler.sample(prompt, { numSamples: 2, maxTokens: 4, seed: 1 });
  const data = sequences.map((sequence, i) => rlDatum({ prompt, sequence, advantage: i === 0 ? 1 : -1 }));
  const metrics = await train(training, () => training.forwardBackwardCustom(data, gspo()), 3);
  expect(metrics[0]!['ratio/mean']).toBeCloseTo(1, 4);
  expect(metrics[0]!['ratio/clipped_share']).toBe(0);
  expect(metrics.at(-1)!['ratio/clipped_share']).toBe(1);
});

/** A saved version that has learnt to go on in its own way. */
async function teacherOf(completion: readonly number[]): Promise<SamplingClient> {
  await using training = await start();
  const data = [sftDatum({ prompt: [3, 4], completion })];
  for (let step = 0; step < 4; step++) {
    const pass = training.forwardBackward(data, 'cross_entropy');
    await training.optimStep({ learningRate: 5e-3 });
    await pass;
  }
  const { modelPackageArn } = await training.saveWeightsForSampler();
  return service.createSamplingClient({ modelPackageArn });
}

/** Mean of log p_student − log p_teacher over samples of the student. */
async function divergence(student: SamplingClient, teacher: SamplingClient): Promise<number> {
  const prompt = [3, 4];
  const { sequences } = await student.sample(prompt, { numSamples: 64, maxTokens: 2, seed: 9 });
  const terms = await Promise.all(
    sequences.map(async ({ tokens, logprobs }) => {
      const scores = (await teacher.computeLogprobs([...prompt, ...tokens])).slice(prompt.length);
      return logprobs.map((logprob, t) => logprob - scores[t]!);
    }),
  );
  const flat = terms.flat();
  return flat.reduce((sum, term) => sum + term, 0) / flat.length;
}

test('a student that is taught on what it writes comes nearer to its teacher', async () => {
  await using training = await start();
  await using teacher = await teacherOf([5, 6, 7]);
  const prompt = [3, 4];
  let student = await training.saveWeightsAndGetSamplingClient();
  const before = await divergence(student, teacher);
  for (let step = 0; step < 4; step++) {
    const { sequences } = await student.sample(prompt, { numSamples: 32, maxTokens: 2, seed: step });
    const samples = sequences.map((sequence) => ({ prompt, sequence }));
    const data = await distillationData(samples, { teacher });
    const pass = training.forwardBackward(data, 'importance_sampling');
    const update = training.optimStep({ learningRate: 1e-2, weightDecay: 0 });
    student = await training.saveWeightsAndGetSamplingClient();
    await Promise.all([pass, update]);
  }
  const after = await divergence(student, teacher);
  expect(before).toBeGreaterThan(0.1);
  expect(after).toBeLessThan(0.7 * before);
});

test('the KL loss adds to the loss beside it, and holds the model to its reference', async () => {
  const drift = async (coefficient: number): Promise<number> => {
    await using training = await start();
    const data = await withReference([sftDatum({ prompt: [3, 4], completion: [5, 6, 7] })], base);
    const plain = data.map(({ modelInput, lossFnInputs: { refLogProb: _, ...lossFnInputs } }) => ({
      modelInput,
      lossFnInputs,
    }));
    let kl = 0;
    for (let step = 0; step < 8; step++) {
      const pass = training.forwardBackward(plain, 'cross_entropy');
      const near = training.forwardBackwardCustom(data, klLoss({ coefficient, estimator: 'k2' }));
      await training.optimStep({ learningRate: 5e-3, weightDecay: 0 });
      await pass;
      kl = (await near).metrics['kl/mean']!;
    }
    return kl;
  };
  const [free, held] = [await drift(0), await drift(10)];
  expect(held).toBeLessThan(0.5 * free);
});
