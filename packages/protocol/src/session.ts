/** What a session is made of, and the states it goes through. */

/** Linear layers that can carry an adapter; `lm_head` is left out unless named. */
export const targetModules = [
  'q_proj',
  'k_proj',
  'v_proj',
  'o_proj',
  'gate_proj',
  'up_proj',
  'down_proj',
  'lm_head',
] as const;
export type TargetModule = (typeof targetModules)[number];
export const defaultTargetModules: readonly TargetModule[] = targetModules.filter((name) => name !== 'lm_head');

/**
 * How versions of an adapter are sampled from. `apart`: the adapter is an input beside the base's weights, which all sessions share: a new version costs
 * milliseconds. `merged`: the adapter is folded into a copy of the weights, which one row at a time is faster with; a version then takes a copy of the model.
 */
export const samplerPaths = ['apart', 'merged'] as const;
export type SamplerPath = (typeof samplerPaths)[number];

export interface LoraSpec {
  /** 1–256. */
  readonly rank: number;
  /** The adapter is scaled by alpha / rank. */
  readonly alpha: number;
  readonly targetModules: readonly TargetModule[];
  /** Fixed when the session is made; absent: `apart`. */
  readonly samplerPath?: SamplerPath;
}

/** What is trained: an adapter, or every weight. */
export type TrainingSpec = ({ readonly type: 'lora' } & LoraSpec) | { readonly type: 'full' };

/** What a session trains; `none` for one that only samples, from its base model and from saved versions of it. */
export type SessionTraining = TrainingSpec | { readonly type: 'none' };

export interface SessionSpec {
  /** Unique on a server, 1–63 characters. */
  readonly name: string;
  /** Id of an installed model, such as `loopwright-tiny`, or the path of a directory. */
  readonly baseModel: string;
  readonly training: TrainingSpec;
  /** Initialisation of the adapter. */
  readonly seed: number;
}

/** Spelled as the training-session API spells them. */
export const sessionStatuses = [
  'Created',
  'Scheduled',
  'Running',
  'Blocked',
  'Failed',
  'Stopping',
  'Stopped',
  'Expired',
  'Deleting',
  'DeletionFailed',
] as const;
export type SessionStatus = (typeof sessionStatuses)[number];
export const activeStatuses: readonly SessionStatus[] = ['Running', 'Blocked'];

export interface TokenUsage {
  readonly prefillTokens: number;
  readonly sampleTokens: number;
  readonly trainingTokens: number;
}

/** What a line of summed usage stands for: a session, a base model, or a type of operation on a base model. */
export const usageGroupings = ['session', 'model', 'operation'] as const;
export type UsageGrouping = (typeof usageGroupings)[number];
