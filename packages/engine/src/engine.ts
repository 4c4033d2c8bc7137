/**
 * The Engine: runs one base model for many sessions. Callers above know nothing of how it computes.
 *
 * Rules that every engine keeps:
 * - calls of one session are made one at a time and in order by the caller; sampling calls may overlap them and each other
 * - work is done in bounded slices, so that sampling, training, cancels and heartbeats interleave
 * - a failed or cancelled pass leaves the pending gradient as it was before the call
 * - inputs are checked against the model (token range, context length) before any work
 */
import type {
  AdamParams,
  ComputeLogprobsResult,
  ModelCard,
  OptimStepResult,
  PassOperation,
  PassResult,
  SampleResult,
  SamplerPath,
  SamplingOperation,
  SessionSpec,
  VersionId,
} from '@loopwright/protocol';
import type { Device } from './devices.js';
import type { PrecisionEffect, SamplerPrecision } from './precision.js';

/** Everything about how a session is computed that could change bits; fixed at creation and recorded with it. */
export interface ExecutionPlan {
  readonly engine: string;
  readonly runtimeVersion: string;
  readonly threads: number;
  /** Absent in plans made before there was a choice: `cpu`. */
  readonly device?: Device;
  /** Whether the same operations give the same bits again; not claimed of any device but the processor. */
  readonly deterministic: boolean;
  /** `apart`: adapters are inputs beside constant base weights. `merged`: the sampler's weights are its own, as always for full training. */
  readonly samplerPath: SamplerPath;
  /** What decoding steps and heads compute in; absent in plans made before there was a choice: `float32`. Prompts and scores are float32 always. */
  readonly samplerPrecision?: SamplerPrecision;
  /** Tokens at most in one micro-batch, padding included. */
  readonly microBatchTokens: number;
  /** Sequence lengths are padded to a multiple of this. */
  readonly lengthMultiple: number;
  /** Whether datums that begin alike share the tokens of their beginning in a pass; absent in plans made before there was that: no. */
  readonly sharePrefixes?: boolean;
  /**
   * Whether the backward pass of an adapter reads the base's weights as constants that the runtime packs, of which each such program holds
   * its own; absent in plans made before there was that: no. Packed products add up in another order.
   */
  readonly packWeights?: boolean;
  /** What passes compute again instead of keeping it for their backward part; absent in plans made before there was that: nothing. */
  readonly recompute?: RecomputePlan;
}

/** Memory for time: which micro-batches keep less. */
export interface RecomputePlan {
  /** In rows of more tokens than these, padding included, scores of attention are computed again, and the head goes in chunks. */
  readonly attentionOver: number;
  /** In micro-batches of more tokens than these, padding included, every layer is computed again; 0: always. */
  readonly layersOver: number;
}

export interface SessionOptions {
  /** Plan of an earlier incarnation, when a session is rebuilt; absent for a new one. */
  readonly plan?: ExecutionPlan;
}

/** Weights a sampling call reads: the base, or a version whose files lie in `directory` (a PEFT adapter, or a model for full training). */
export type SamplerWeights =
  | { readonly type: 'base' }
  | { readonly type: 'version'; readonly id: VersionId; readonly directory: string };

type SampleOperation = Extract<SamplingOperation, { type: 'sample' }>;
type LogprobsOperation = Extract<SamplingOperation, { type: 'compute-logprobs' }>;
export type SampleRequest = Omit<SampleOperation, 'type' | 'weights'> & { readonly weights: SamplerWeights };
export type LogprobsRequest = Omit<LogprobsOperation, 'type' | 'weights'> & { readonly weights: SamplerWeights };

export interface CallOptions {
  readonly signal?: AbortSignal;
  /** Work that was done before and is done again for a session that is made anew: it is not refused for its need of memory. */
  readonly isRepeat?: boolean;
  /** Called between slices with the share done, 0 to 1. */
  readonly onProgress?: (done: number) => void;
  /** Of `sample`: called with each token as it is drawn. */
  readonly onToken?: OnToken;
}

/**
 * A token of a sample, as it is drawn. Positions count from 0 and come in order; a request that is taken up by another engine begins
 * again at 0, with the same tokens.
 */
export type OnToken = (token: DrawnToken) => void;

export interface DrawnToken {
  readonly sample: number;
  readonly position: number;
  readonly id: number;
  /** At temperature 1 without truncation, as in the result. */
  readonly logprob: number;
}

/** Files written by a save, relative to the directory that was given. All are complete and fsynced when the call returns. */
export interface SavedFiles {
  readonly files: readonly string[];
}

export interface SessionCounters {
  /** Optimizer steps taken. */
  readonly step: number;
  /** Passes whose gradients are in the pending one. */
  readonly pendingPasses: number;
}

/** What a snapshot stands for. */
export interface SessionSnapshot extends SessionCounters {
  /** As it was given: the engine doesn't look into it. */
  readonly metadata: string;
  readonly sizeBytes: number;
}

export interface Engine extends AsyncDisposable {
  readonly model: ModelCard;
  /** Identity of this incarnation of the engine; changes when its process was restarted and all sessions are gone. */
  readonly incarnation: string;
  /** Of an engine that samples in less than float32. */
  readonly precisionEffect?: PrecisionEffect | undefined;

  createSession(spec: SessionSpec, options?: SessionOptions): Promise<ExecutionPlan>;
  /** Frees everything of a session; unknown names are fine. */
  closeSession(name: string): Promise<void>;

  /** Both kinds of pass; `forward` leaves gradients untouched. */
  pass(session: string, operation: PassOperation, options?: CallOptions): Promise<PassResult>;
  /** Applies the pending gradient and clears it; with no gradient it steps with zeros. */
  optimStep(session: string, adam: AdamParams, options?: CallOptions): Promise<OptimStepResult>;
  /** Drops the pending gradient. */
  clearGradient(session: string): Promise<void>;

  /** Writes sampler weights (PEFT adapter, or a model directory for full training) into the empty `directory`; with `merge` also `merged/`. Keeps them at hand under `version`. */
  saveWeights(
    session: string,
    options: { version: VersionId; directory: string; merge: boolean } & CallOptions,
  ): Promise<SavedFiles>;
  /** As saveWeights, with optimizer state (moments, step) beside the weights. Pending gradients are not part of it. */
  saveState(session: string, options: { version: VersionId; directory: string } & CallOptions): Promise<SavedFiles>;
  /** Replaces weights (and moments and step, or clears them) and drops pending gradients. */
  loadState(session: string, options: { directory: string; loadOptimizer: boolean } & CallOptions): Promise<void>;

  /**
   * Writes all of a session (weights, moments, step, pending gradient) into `directory` as it is at the time of the call; the
   * snapshot that was there is replaced when the new one is whole on the disk. Passes may be called while it is written.
   *
   * @throws `disk_full`, `cancelled`; the snapshot that was there is then untouched
   */
  snapshot(session: string, options: { directory: string; metadata?: string } & CallOptions): Promise<SessionSnapshot>;
  /**
   * Makes a session what the snapshot in `directory` says; it goes on bit for bit. The session was made from the same spec (but for
   * its name) and plan. A restore that fails leaves it as it was.
   *
   * @throws `unknown_version` without a snapshot, `model_invalid` for one that is cut or damaged, `checkpoint_mismatch` for one of
   *   another session or format
   */
  restore(session: string, options: { directory: string } & CallOptions): Promise<SessionSnapshot>;

  sample(request: SampleRequest, options?: CallOptions): Promise<SampleResult>;
  computeLogprobs(request: LogprobsRequest, options?: CallOptions): Promise<ComputeLogprobsResult>;
  /** Brings weights into memory, so that the next sampling call starts at once. */
  loadSampler(weights: SamplerWeights, options?: CallOptions): Promise<void>;
}
