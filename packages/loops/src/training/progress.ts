/** How far a loop has come: where it goes on, when it saves, and what an abort leaves behind. The one place for all loops. */
import { complaint } from '@loopwright/protocol';
import { counted } from '../counted.js';
import type { JsonValue } from '../data/row.js';
import type { Checkpoints, LoopPosition } from './checkpoints.js';
import { wholeNumber } from './options.js';
import type { Scope, StartOptions, Work } from './scope.js';

export interface ProgressOptions<S> {
  readonly loop: string;
  readonly checkpoints: Checkpoints | undefined;
  /** The loop's own state out of what was kept; undefined where it is no such state. */
  readonly read: (state: JsonValue) => S | undefined;
  readonly signal: AbortSignal | undefined;
}

/** @typeParam S what a loop keeps besides the number of the step; plain JSON */
export class Progress<S extends object> {
  readonly #options: ProgressOptions<S>;
  readonly #state: S | undefined;
  #step: number;
  /** The last place between two steps, if it isn't saved. */
  #unsaved: LoopPosition | undefined;
  /** Weights are somewhere between two steps. */
  #isTraining = false;

  /** @throws `invalid_argument`, `data_invalid` for the position of another loop */
  constructor(options: ProgressOptions<S>) {
    this.#options = options;
    const { checkpoints, loop, read } = options;
    if (checkpoints !== undefined) wholeNumber('checkpoints.every', checkpoints.every, 1);
    const { resumed } = checkpoints ?? {};
    this.#step = resumed?.step ?? 0;
    this.#state = resumed === undefined || resumed.loop !== loop ? undefined : read(resumed.state);
    if (resumed === undefined || this.#state !== undefined) return;
    throw otherLoop(loop, resumed);
  }

  /** Steps that were done, those of earlier processes included. */
  get step(): number {
    return this.#step;
  }

  /** As it was kept; undefined at the beginning. */
  get state(): S | undefined {
    return this.#state;
  }

  /** For calls that train: half of a step would be worse than all or none of it. */
  get start(): StartOptions {
    return { shielded: this.#options.checkpoints !== undefined };
  }

  /** Says that there is nothing left, where the run was resumed after its last step. */
  nothingLeft(totalSteps: number, { more }: { readonly more: string }): string | undefined {
    if (this.#state === undefined || this.#step < totalSteps) return undefined;
    return nothingLeft(this.#step, more);
  }

  /** The calls that make a step of what was collected. Weights are between two steps from now on to {@link Progress.end}. */
  async train<T extends readonly unknown[]>(scope: Scope, work: { readonly [K in keyof T]: Work<T[K]> }): Promise<T> {
    scope.check();
    this.#isTraining = true;
    return scope.all<T>(work, this.start);
  }

  /** The end of a step, after all that is told of it. Saves where that is due. @param state as it is now; asked at once, and only where there are checkpoints */
  async end(scope: Scope, state: () => S, { isLast }: { readonly isLast: boolean }): Promise<void> {
    const { loop, checkpoints } = this.#options;
    this.#step += 1;
    this.#isTraining = false;
    if (checkpoints === undefined) return;
    this.#unsaved = { loop, step: this.#step, state: state() as JsonValue }; // true: S is plain JSON
    if (isLast || this.#step % checkpoints.every === 0) await this.#save(scope);
  }

  /** Runs the loop. When its caller aborts between two steps, or in the sampling of one, the place is saved. */
  async within<T>(scope: Scope, body: () => Promise<T>): Promise<T> {
    try {
      return await body();
    } catch (error) {
      if (this.#options.signal?.aborted === true && !this.#isTraining) await this.#save(scope);
      throw error;
    }
  }

  async #save(scope: Scope): Promise<void> {
    const { checkpoints } = this.#options;
    const position = this.#unsaved;
    if (checkpoints === undefined || position === undefined) return;
    await scope.start((signal) => checkpoints.save(position, { signal }), { shielded: true }).ended;
    this.#unsaved = undefined;
  }
}

/** @param more what to raise */
export function nothingLeft(step: number, more: string): string {
  return `nothing left to train: the run has its ${counted(step, 'step')}; raise ${more} to go on`;
}

/** The error of a loop that is to go on where another stood, or where nothing of its own is said. */
export function otherLoop(loop: string, resumed: LoopPosition): Error {
  return complaint({
    code: 'data_invalid',
    field: 'options.checkpoints.resumed',
    expected: `where a loop of the kind ${loop} stood`,
    got: resumed.loop === loop ? 'something else' : `where one of the kind ${resumed.loop} did`,
    remedy: 'go on with the program, and the version of loopwright, that the run began with',
  });
}
