/** What a loop needs so that another process can go on with it: a place for where it stands, and where an earlier one stood. */
import type { JsonValue } from '../data/row.js';

/** Where a loop stands between two steps: plain JSON, without content. */
export interface LoopPosition {
  /** Which loop, such as `grpo`: another can't go on with it. */
  readonly loop: string;
  /** Steps that were done. */
  readonly step: number;
  /** What else the loop has to know: its place in the data, random streams, counters. */
  readonly state: JsonValue;
}

/** Keeps weights and position together. `withTrainingRun` of the package `loopwright` makes one for a run folder. */
export interface Checkpoints {
  /** Steps from one to the next; there is also one after the last step, and one when the caller aborts. */
  readonly every: number;
  /** Where the loop goes on; the training client has the weights and the optimizer state of that place. Absent at the beginning. */
  readonly resumed?: LoopPosition | undefined;
  /** Saves the state of the training client as it is after all calls so far, then the position; both last when it resolves. */
  save(position: LoopPosition, options: { readonly signal: AbortSignal }): Promise<void>;
  /** How to go on, for the error of an abort. */
  note?(): string | undefined;
}

/** Of the loops that can be gone on with. */
export interface CheckpointOptions {
  /**
   * Saves where the run stands, and goes on from where another stood. With it, an abort lets a step whose training has begun end, and saves before
   * the run ends; without it, everything under way is cancelled and nothing saved.
   */
  readonly checkpoints?: Checkpoints;
}
