/** Losses computed by the caller, on the embedded engine: their gradient is that of the engine's own losses. */
import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { type CustomLoss, connect, type DatumFor, rlDatum, type TrainingClient } from 'loopwright';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { makeTinyModel } from './support/tiny-model.js';

type RlDatum = DatumFor<'importance_sampling' | 'ppo'>;

let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
let service: Awaited<ReturnType<typeof connect>>;

beforeAll(async () => {
  folder = await temporaryDirectory();
  const model = await makeTinyModel(join(folder.path, 'model'));
  service = await connect({ dataDir: join(folder.path, 'data'), models: { tiny: model } });
});
afterAll(async () => {
  await service.close();
  await folder[Symbol.asyncDispose]();
});

const policyGradient =
  (slopeOf: (ratio: number, advantage: number) => readonly [loss: number, slope: number]): CustomLoss<RlDatum> =>
  (logprobs, data) => {
    let loss = 0;
    const gradients = logprobs.map((row, i) =>
      row.map((lp, t) => {
        const { weights, advantages, logprobs: sampled } = data[i]!.lossFnInputs;
        if (Number(weights[t]) === 0) return 0;
        const [value, slope] = slopeOf(Math.exp(lp - Number(sampled[t])), Number(advantages[t]));
        loss += value;
        return slope;
      }),
    );
    return { loss, gradients };
  };

const losses = {
  importance_sampling: policyGradient((r, a) => [-r * a, -r * a]),
  ppo: policyGradient((r, a) => {
    const clipped = Math.min(1.2, Math.max(0.8, r)) * a;
    return r * a <= clipped ? [-r * a, -r * a] : [-clipped, 0];
  }),
};

/** Samples whose ratios to the model are from 0.5 to 2, so that ppo clips some of them. */
async function ratioData(training: TrainingClient): Promise<RlDatum[]> {
  const answers = [
    [7, 8, 9],
    [11, 12],
    [5, 6, 7, 8],
  ];
  const sampler = await training.saveWeightsAndGetSamplingClient();
  return Promise.all(
    answers.map(async (tokens, i) => {
      const prompt = [3 + i, 4];
      const scored = await sampler.computeLogprobs([...prompt, ...tokens]);
      const logprobs = tokens.map((_, t) => scored[prompt.length + t]! + 0.7 * Math.sin(3 * t + i));
      return rlDatum({ prompt, sequence: { tokens, logprobs }, advantage: tokens.map((_, t) => Math.cos(2 * t + i)) });
    }),
  );
}

test.each(['importance_sampling', 'ppo'] as const)(
  'a custom %s has the loss and the gradient of the built-in one',
  async (name) => {
    const start = () => service.createLoraTrainingClient({ baseModel: 'tiny', rank: 4, seed: 5 });
    const [builtIn, custom] = [await start(), await start()];
    const data = await ratioData(builtIn);
    const learningRate = 1e-3;
    for (let step = 0; step < 3; step++) {
      const wanted = await builtIn.forwardBackward(data, name);
      const got = await custom.forwardBackwardCustom(data, losses[name]);
      // Log-probabilities are float32: the loss differs by rounding of the ratios.
      expect(Math.abs(got.loss - wanted.metrics['loss/sum']!)).toBeLessThan(1e-5);
      const [one, other] = await Promise.all([
        builtIn.optimStep({ learningRate, eps: 1e-3 }),
        custom.optimStep({ learningRate, eps: 1e-3 }),
      ]);
      const [a, b] = [one, other].map(({ metrics }) => metrics['optim/grad_norm']!) as [number, number];
      expect(a).toBeGreaterThan(1e-3);
      expect(Math.abs(a - b)).toBeLessThan(2e-5 * a);
    }
    const [one, other] = await Promise.all(
      [builtIn, custom].map(async (training) => (await training.forward(data, name)).outputs),
    );
    for (const [i, { logprobs }] of one!.entries()) {
      for (const [t, lp] of logprobs.entries()) expect(Math.abs(lp - other![i]!.logprobs[t]!)).toBeLessThan(2e-5);
    }
  },
);

test('a custom loss that fails leaves the session as it was', async () => {
  const start = () => service.createLoraTrainingClient({ baseModel: 'tiny', rank: 4, seed: 6 });
  const [training, undisturbed] = [await start(), await start()];
  const data = await ratioData(training);
  await ratioData(undisturbed);
  const broken = training.forwardBackwardCustom(data, () => ({ loss: 1, gradients: [[Number.NaN]] }));
  await expect(broken).rejects.toMatchObject({ code: 'loss_function_failed' });
  await expect(training.optimStep()).rejects.toMatchObject({ code: 'gradient_incomplete' });
  const logprobs: number[][][] = [];
  for (const each of [training, undisturbed]) {
    const pass = each.forwardBackwardCustom(data, losses.ppo);
    await each.optimStep({ learningRate: 1e-3 });
    await pass;
    logprobs.push((await each.forward(data, 'ppo')).outputs.map((output) => output.logprobs));
  }
  expect(logprobs[0]).toEqual(logprobs[1]);
});
