/** What must compile and what must not. Nothing here is ever called: `typing.test.ts` has it checked by tsc. */
import type { DatumFor } from '@loopwright/protocol';
import { expectTypeOf } from 'vitest';
import type { CustomPassOutput } from '../custom-loss.js';
import type { OperationFuture } from '../operation-future.js';
import type { SampleOutput, SamplingClient } from '../sampling-client.js';
import type { ServiceClient } from '../service-client.js';
import type { ForwardBackwardOutput } from '../training-calls.js';
import type { TrainingClient } from '../training-client.js';

type RlDatum = DatumFor<'importance_sampling' | 'ppo' | 'cispo' | 'dro'>;

export function compiles(training: TrainingClient, sft: DatumFor<'cross_entropy'>[], rl: RlDatum[]): void {
  expectTypeOf(training.forwardBackward(sft, 'cross_entropy')).toEqualTypeOf<OperationFuture<ForwardBackwardOutput>>();
  training.forwardBackward(rl, 'importance_sampling');
  training.forwardBackward(rl, 'ppo', { clipLowThreshold: 0.8 });
  training.forward(rl, 'dro', { beta: 0.1 });
  training.forwardBackward([{ modelInput: [1], lossFnInputs: { targetTokens: [2], weights: [1] } }], 'cross_entropy');
  training.forwardBackward(
    [{ modelInput: Int32Array.of(1), lossFnInputs: { targetTokens: [[2, 3]], weights: [[1, 0]], temperature: [1] } }],
    'cross_entropy',
  );

  // @ts-expect-error an RL loss needs advantages and logprobs
  training.forwardBackward(sft, 'ppo');
  // @ts-expect-error weights are missing
  training.forwardBackward([{ modelInput: [1], lossFnInputs: { targetTokens: [2] } }], 'cross_entropy');
  training.forward(
    // @ts-expect-error no such input
    [{ modelInput: [1], lossFnInputs: { targetTokens: [2], weights: [1], labels: [1] } }],
    'cross_entropy',
  );
  // @ts-expect-error no such loss
  training.forwardBackward(sft, 'crossentropy');
  // @ts-expect-error ppo has no beta
  training.forwardBackward(rl, 'ppo', { beta: 1 });
  // @ts-expect-error cross_entropy has no configuration
  training.forwardBackward(sft, 'cross_entropy', { clipLowThreshold: 0.8 });
  // @ts-expect-error misspelt
  training.optimStep({ learning_rate: 1e-4 });
}

export function customLosses(training: TrainingClient, sft: DatumFor<'cross_entropy'>[]): void {
  expectTypeOf(
    training.forwardBackwardCustom(sft, (logprobs, data) => {
      expectTypeOf(logprobs).toEqualTypeOf<readonly (readonly number[])[]>();
      expectTypeOf(data).toEqualTypeOf<readonly DatumFor<'cross_entropy'>[]>();
      return { loss: 0, gradients: logprobs };
    }),
  ).toEqualTypeOf<OperationFuture<CustomPassOutput>>();
  training.forwardBackwardCustom([{ modelInput: [1], lossFnInputs: { targetTokens: [2] }, pair: 3 }], (_, [first]) => ({
    loss: first?.pair ?? 0,
    gradients: [[0]],
  }));
  // @ts-expect-error no gradients
  training.forwardBackwardCustom(sft, () => ({ loss: 0 }));
  // @ts-expect-error nothing can be awaited between the passes
  training.forwardBackwardCustom(sft, async (logprobs) => ({ loss: 0, gradients: logprobs }));
  // @ts-expect-error targets are missing
  training.forwardBackwardCustom([{ modelInput: [1], lossFnInputs: {} }], (gradients) => ({ loss: 0, gradients }));
}

export async function clients(service: ServiceClient, sampler: SamplingClient): Promise<void> {
  expectTypeOf(sampler.sample([1])).toEqualTypeOf<OperationFuture<SampleOutput>>();
  expectTypeOf(await sampler.computeLogprobs([1])).toEqualTypeOf<(number | null)[]>();
  await service.createSamplingClient({ modelPackageArn: 'a' });
  // @ts-expect-error one of the two, not both
  await service.createSamplingClient({ baseModel: 'a', modelPackageArn: 'b' });
  // @ts-expect-error full training has no rank
  await service.createTrainingClient({ trainingType: 'full', baseModel: 'a', rank: 8 });
  // @ts-expect-error no such module
  await service.createLoraTrainingClient({ baseModel: 'a', targetModules: ['c_attn'] });
}
