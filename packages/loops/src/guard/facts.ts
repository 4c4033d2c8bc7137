/** What a step tells the guard. All of it is optional but the step: an alarm whose facts are missing is not raised. */
import type { Grade } from '../environments/environment.js';
import type { Metrics } from '../training/grpo-metrics.js';

type Tokens = ArrayLike<number>;

/** One answer or episode. */
export interface SampleFacts {
  /** What the model sampled; of episodes, all turns in their order. */
  readonly tokens: Tokens;
  /** Of those tokens, at temperature 1; in nats. */
  readonly logprobs?: ArrayLike<number>;
  /** `length`: cut off; of episodes, any of their answers. */
  readonly stopReason?: 'stop' | 'length';
  /** Absent where it could not be judged. */
  readonly reward?: number;
  /** Default `ok`. */
  readonly status?: Grade['status'];
  /** Turns whose text has other ids when it is encoded again. */
  readonly retokenizedTurns?: number;
}

/** The answers to one problem. */
export interface GroupFacts {
  readonly samples: readonly SampleFacts[];
  readonly prompt?: Tokens;
  /** Optimizer steps between the weights it was sampled from and the ones it is trained on; default: by the sampler. */
  readonly age?: number;
}

/** A part of the token sequence that a datum was made of. */
export interface SourcePart {
  /** `sampled`: by the model, or for supervised data the answer to learn; `context`: all that follows a prompt and is not, such as tool results. */
  readonly kind: 'prompt' | 'sampled' | 'context';
  readonly tokens: Tokens;
}

/** What a datum was made of, from the first token to the last. */
export interface DatumSource {
  readonly parts: readonly SourcePart[];
  /** As that of its group. */
  readonly age?: number;
}

/** A datum as it was sent, of whatever loss. */
export interface DatumFacts {
  readonly modelInput: Tokens;
  readonly lossFnInputs: {
    readonly targetTokens: ArrayLike<number | readonly number[]>;
    /** Absent: 1 everywhere. */
    readonly weights?: ArrayLike<number | readonly number[]>;
    readonly logprobs?: ArrayLike<number | readonly number[]>;
    readonly advantages?: ArrayLike<number | readonly number[]>;
  };
}

/** Rows or problems that the step took. */
export interface RowFacts {
  /** Their ids, or anything that tells them apart. */
  readonly keys: readonly (string | number)[];
  /** Rows of an epoch. */
  readonly of: number;
  /** Of each key, from 0; default: counted. */
  readonly epochs?: readonly number[];
  /** How many rows of the next epoch may come before the last of this one; default 0. */
  readonly slack?: number;
  /** Left out on purpose in this step, such as with `stalePolicy: 'drop'`. */
  readonly dropped?: number;
  /** Lines of the data that could not be read, as the data set counts them. */
  readonly unread?: number;
}

/** What happened in a step. */
export interface StepFacts {
  /** From 1. */
  readonly step: number;
  /** By the names that the loops use: `reward/mean`, `optim/grad_norm`, `optim/step`, `kl/base`, `loss/mean`, `tokens/trained`; later fields are added to them. */
  readonly metrics?: Metrics;
  readonly groups?: readonly GroupFacts[];
  /** What was sampled with, as it was asked for. */
  readonly sampling?: { readonly temperature?: number; readonly topP?: number; readonly topK?: number };
  /** The client that the answers were sampled by: the same object is the same weights. */
  readonly sampler?: object;
  /** What was sent to be trained on. */
  readonly data?: readonly DatumFacts[];
  /** Of each datum. */
  readonly sources?: readonly (DatumSource | undefined)[];
  /** What the pass over `data` gave, before the optimizer step. */
  readonly outputs?: readonly { readonly logprobs: ArrayLike<number> }[];
  /** What the optimizer step gave; its metrics count as the step's. */
  readonly update?: { readonly metrics: Metrics };
  /** Default: `optim/lr` of the metrics. */
  readonly learningRate?: number;
  /** The newest measurement on what is not trained on, if there is one since the last step: `validation/accuracy` or `validation/loss`, with their intervals. */
  readonly validation?: { readonly step: number; readonly metrics: Metrics };
  readonly rows?: RowFacts;
  /** What ended the step before its end. */
  readonly failure?: unknown;
}
