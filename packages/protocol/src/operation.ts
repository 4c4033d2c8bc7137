/** Operations and their results, wire-neutral: what the log stores and the engine runs. Nothing in here is optional by default. */
import type { Datum } from './datum.js';
import type { LossSpec } from './losses.js';
import type { AdamParams } from './optimizer.js';
import type { SamplingParams, StopReason } from './sampling.js';
import type { IdTensor } from './tensor.js';

/** Names a saved version in the registry; unique on a server. */
export type VersionId = string;

/** Which weights a sampling operation reads: resolved at acceptance, never "latest". */
export type WeightsRef = { readonly type: 'base' } | { readonly type: 'version'; readonly id: VersionId };

export interface PassOperation {
  readonly type: 'forward' | 'forward-backward';
  readonly data: readonly Datum[];
  readonly loss: LossSpec;
}

export type TrainingOperation =
  | PassOperation
  | { readonly type: 'optim-step'; readonly adam: AdamParams }
  | {
      readonly type: 'save-weights';
      /** Fold the adapter into the base and save the whole model besides. */
      readonly merge: boolean;
      readonly description: string;
      /** Only versions marked so expire; null is permanent. */
      readonly ttlSeconds: number | null;
    }
  | {
      readonly type: 'save-state';
      readonly description: string;
      /** As of `save-weights`; absent is permanent. */
      readonly ttlSeconds?: number;
    }
  | { readonly type: 'load-state'; readonly version: VersionId; readonly loadOptimizer: boolean };

export type SamplingOperation =
  | {
      readonly type: 'sample';
      /** Token ids, length ≥ 1. */
      readonly prompt: Int32Array;
      readonly numSamples: number;
      readonly params: SamplingParams;
      readonly weights: WeightsRef;
      readonly promptLogprobs: boolean;
      /** k of the likeliest tokens at each prompt position; 0 is off. */
      readonly topkPromptLogprobs: number;
      /** `promptLogprobs` of so many tokens only, at the end of the prompt; absent is all. */
      readonly promptLogprobsLast?: number;
      /** k of the likeliest tokens at each sampled position; absent is off. */
      readonly topkSampleLogprobs?: number;
      /** Ids (P−1,K) whose log-probabilities are wanted as each token but the first of a prompt of P tokens; negative ones are skipped. */
      readonly promptTargets?: IdTensor;
    }
  | { readonly type: 'compute-logprobs'; readonly prompt: Int32Array; readonly weights: WeightsRef }
  | { readonly type: 'load-weights'; readonly version: VersionId };

export type Operation = TrainingOperation | SamplingOperation;
export type OperationType = Operation['type'];

export const trainingOperationTypes = [
  'forward',
  'forward-backward',
  'optim-step',
  'save-weights',
  'save-state',
  'load-state',
] as const satisfies readonly TrainingOperation['type'][];

export const operationStatuses = ['Pending', 'InProgress', 'Completed', 'Failed', 'Skipped'] as const;
export type OperationStatus = (typeof operationStatuses)[number];

export interface DatumOutput {
  /** log p(target) at temperature 1 (or at the `temperature` input where given); same shape as `targetTokens`, masked positions included. */
  readonly logprobs: Float32Array;
  /** Sum of the datum's token losses. */
  readonly loss: number;
}

export interface PassResult {
  readonly outputs: readonly DatumOutput[];
  /** Sum over tokens and datums. */
  readonly lossSum: number;
  readonly metrics: Readonly<Record<string, number>>;
  /** Tokens of all model inputs. */
  readonly trainingTokens: number;
}

export interface OptimStepResult {
  /** Steps taken by this session, this one included. */
  readonly step: number;
  /** Global norm before clipping. */
  readonly gradNorm: number;
  readonly metrics: Readonly<Record<string, number>>;
  /** Equal for equal bits of all trained weights after the step; kept in the log, for replays. Absent from engines that can't tell. */
  readonly weightsFingerprint?: string;
}

export interface SampledSequence {
  readonly tokens: Int32Array;
  /** One per token, at temperature 1 without truncation. */
  readonly logprobs: Float32Array;
  readonly stopReason: StopReason;
  /** One list per token, likeliest first; where `topkSampleLogprobs` asked for them. */
  readonly topkLogprobs?: readonly (readonly TokenLogprob[])[];
}

export interface TokenLogprob {
  readonly tokenId: number;
  readonly logprob: number;
}

export interface SampleResult {
  readonly sequences: readonly SampledSequence[];
  /** One per prompt token; the first has no predecessor and is NaN here, each wire spells it in its own way. */
  readonly promptLogprobs?: Float32Array;
  /** One list per prompt token, likeliest first; the first is empty. */
  readonly topkPromptLogprobs?: readonly (readonly TokenLogprob[])[];
  /** As `promptTargets`, row by row; NaN where one was skipped. */
  readonly promptTargetLogprobs?: Float32Array;
  /** Tokens of the prompt, counted once per request. */
  readonly prefillTokens: number;
}

export interface ComputeLogprobsResult {
  /** One per prompt token; the first is NaN. */
  readonly logprobs: Float32Array;
  readonly prefillTokens: number;
}

/** Results by operation type. */
export interface OperationResults {
  forward: PassResult;
  'forward-backward': PassResult;
  'optim-step': OptimStepResult;
  'save-weights': { readonly version: VersionId };
  'save-state': { readonly version: VersionId };
  'load-state': Record<string, never>;
  sample: SampleResult;
  'compute-logprobs': ComputeLogprobsResult;
  'load-weights': Record<string, never>;
}
