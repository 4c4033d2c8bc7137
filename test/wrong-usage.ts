/** Mistakes that must not compile, through the front door. The type check of the tests fails when one of them does. */
import {
  connect,
  type DatumFor,
  type Environment,
  type Problem,
  rlDatum,
  type ServiceConnection,
  sftDatum,
  type TrainingClient,
} from 'loopwright';

export async function connections(): Promise<void> {
  await connect({ dataDir: './data', models: { mine: '/models/mine' }, logLevel: 'info' });
  // @ts-expect-error a server by URL has its own data directory
  await connect({ url: 'http://127.0.0.1:8080', dataDir: './data' });
  // @ts-expect-error no such level
  await connect({ logLevel: 'loud' });
}

export async function sessions(service: ServiceConnection): Promise<void> {
  // @ts-expect-error a base model is needed
  await service.createLoraTrainingClient({ rank: 8 });
  // @ts-expect-error full training has no rank
  await service.createTrainingClient({ trainingType: 'full', baseModel: 'loopwright-tiny', rank: 8 });
  // @ts-expect-error no such module
  await service.createLoraTrainingClient({ baseModel: 'loopwright-tiny', targetModules: ['query'] });
  // @ts-expect-error either a base model or a version
  await service.createSamplingClient({ baseModel: 'loopwright-tiny', modelPackageArn: 'arn:aws:x' });
}

export function losses(training: TrainingClient): void {
  const sft = sftDatum({ prompt: [1], completion: [2] });
  const rl = rlDatum({ prompt: [1], sequence: { tokens: [2], logprobs: [-0.1] }, advantage: 1 });
  training.forwardBackward([rl], 'ppo', { clipLowThreshold: 0.8 });
  // @ts-expect-error no such loss
  training.forwardBackward([sft], 'dpo');
  // @ts-expect-error a policy-gradient loss needs advantages and logprobs
  training.forwardBackward([sft], 'importance_sampling');
  // @ts-expect-error cross entropy has nothing to configure
  training.forwardBackward([sft], 'cross_entropy', { beta: 1 });
  // @ts-expect-error beta belongs to dro
  training.forwardBackward([rl], 'ppo', { beta: 1 });
  // @ts-expect-error learningRate, not lr
  training.optimStep({ lr: 1e-4 });
}

export const misspelt: DatumFor<'cross_entropy'> = {
  modelInput: [1],
  // @ts-expect-error weights, not wieghts
  lossFnInputs: { targetTokens: [2], wieghts: [1] },
};

// @ts-expect-error an environment grades
export const environment: Environment<Problem> = {
  name: 'no-grader',
  draw: () => ({ id: 'a', question: 'a', answer: 'b' }),
};
