/** Everything this wire fills in where a caller leaves it out, and its ranges: the only place where they stand. */
import type { AdamParams, SamplingParams } from '@loopwright/protocol';

export const adamDefaults = {
  learningRate: 1e-4,
  beta1: 0.9,
  beta2: 0.95,
  eps: 1e-12,
  weightDecay: 0,
  /** Off. */
  gradClipNorm: 0,
} as const satisfies Omit<AdamParams, 'loraPlusLrRatio'>;

/** Any positive step: loops probe gradients with a learning rate and an eps far above the usual. */
export const adamRanges = {
  learningRate: { min: 0, max: 1e12 },
  beta1: { min: 0, max: 0.999999 },
  beta2: { min: 0, max: 0.999999 },
  eps: { min: 0, max: 1e12 },
  weightDecay: { min: 0, max: 1e6 },
  gradClipNorm: { min: 0, max: 1e12 },
} as const;

/** Clip thresholds are bounds on the ratio, not epsilons. */
export const lossDefaults = {
  ppo: { clipLowThreshold: 0.8, clipHighThreshold: 1.2 },
  cispo: { clipLowThreshold: 0, clipHighThreshold: 4 },
  dro: { beta: 0.05 },
} as const;

export const samplingDefaults = { temperature: 1, topK: -1, topP: 1 } as const satisfies Partial<SamplingParams>;

/** Rank where a caller names none, and alpha, which is the same for all ranks. */
export const loraDefaults = { rank: 32, alpha: 32 } as const;

/** How long a request for a result is held; the SDK gives up after 45. */
export const holdSeconds = 25;

/** Seconds that a saved version can be asked to live: up to ten years. */
export const ttlRange = { min: 1, max: 315_360_000 } as const;

/** What clients learn when they start; members that are left out keep the SDK's defaults. */
export const clientConfig = {
  pjwt_auth_enabled: false,
  parallel_fwdbwd_chunks: true,
  proto_compress_fwdbwd: false,
  // Clones of a sampling client get small numbers from us instead of drawing random ones.
  sample_join_sampling_session: true,
  sample_use_retrieve_futures: false,
  custom_loss_server_side: false,
  // Of the older SDKs, that ask: requests stay JSON, models from a saved state are made in two calls.
  proto_write_fwdbwd: false,
  fwd_via_fwdbwd: false,
  create_model_via_load_weights: false,
} as const;

export const dynamicConfig = { refresh_interval_sec: 300, sample_cancel_enabled: false } as const;
