/** Everything this wire fills in where a caller leaves it out: the only place where its defaults stand. */
import type { AdamParams, SamplingParams } from '@loopwright/protocol';

/** AdamW of `optimizerStep`; the learning rate has no default on the wire. */
export const adamDefaults = {
  beta1: 0.9,
  beta2: 0.999,
  eps: 1e-8,
  weightDecay: 0.01,
  /** Off. */
  gradClipNorm: 0,
  loraPlusLrRatio: 1,
} as const satisfies Omit<AdamParams, 'learningRate'>;

/** Learning rate that our client sends when its caller names none. */
export const defaultLearningRate = 1e-4;

/** Loss configuration; clip thresholds are bounds on the ratio, not epsilons. */
export const lossDefaults = {
  ppo: { clipLowThreshold: 0.8, clipHighThreshold: 1.2 },
  cispo: { clipLowThreshold: 0, clipHighThreshold: 4 },
  dro: { beta: 0.05 },
} as const;

export const samplingDefaults = {
  temperature: 1,
  topK: -1,
  topP: 1,
  stop: [],
  stopTokenIds: [],
} as const satisfies Omit<SamplingParams, 'maxTokens' | 'seed'>;

/** New tokens per sample that our client asks for when its caller names no limit. */
export const defaultMaxTokens = 512;

/** Result requests: how long a server holds one without the wait header, and at most with it. */
export const holdSeconds = { default: 2, max: 50 } as const;

/** Region and account in the ARNs of a server of one's own. */
export const selfHosted = { partition: 'aws', region: 'self-hosted-1', account: '000000000000' } as const;

export const publicHub = 'SageMakerPublicHub';
/** Group that takes the versions of sessions that name none. */
export const defaultModelPackageGroup = 'sagemaker-default';

/**
 * Members that the API requires and that a server of one's own does not use: our client sends these fixed values.
 * `LoraConfig` stands in for sessions that train every weight (`Loopwright.TrainingType` is `full`).
 */
export const placeholders = {
  RoleArn: `arn:aws:iam::${selfHosted.account}:role/loopwright`,
  OutputConfig: { S3Location: { Path: 's3://loopwright/self-hosted' } },
  LoraConfig: { Rank: 1, Alpha: 1 },
} as const;
