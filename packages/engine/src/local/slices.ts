/**
 * Work in bounded slices. Training and sampling share the engine's one thread: each takes its turn for as long as the other had,
 * so that tokens are decoded during a long pass, and a long decoding never holds a pass up for more than its share.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Yields the share done, 0 to 1, between slices. */
export type Slices<T> = AsyncGenerator<number, T, undefined>;

export interface SliceEvent {
  readonly type: 'training' | 'sampling';
  readonly startMs: number;
  readonly endMs: number;
}

export interface SubmitOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((done: number) => void) | undefined;
  /** False for work that must not stop half way; the signal then counts only before it starts. */
  readonly cancellable?: boolean;
}

interface Task {
  readonly advance: () => Promise<boolean>;
  readonly abandon: (error: unknown) => void;
}

export interface SamplingWork {
  readonly idle: boolean;
  runSlice(): Promise<void>;
  /** Rejects whatever was asked for. */
  failAll(error: unknown): void;
}

export class SliceLoop {
  readonly #tasks: Task[] = [];
  readonly #sampling: SamplingWork;
  readonly #onSlice: ((event: SliceEvent) => void) | undefined;
  /** Milliseconds that each kind has had, counted from when both last had work. */
  readonly #spent = { training: 0, sampling: 0 };
  #running: Promise<void> | undefined;
  #closedBy: { readonly error: unknown } | undefined;

  constructor(sampling: SamplingWork, onSlice?: (event: SliceEvent) => void) {
    this.#sampling = sampling;
    this.#onSlice = onSlice;
  }

  /** Runs the slices in turn with other work; resolves with their result. */
  submit<T>(slices: Slices<T>, { signal, onProgress, cancellable = true }: SubmitOptions = {}): Promise<T> {
    if (this.#closedBy !== undefined) return Promise.reject(this.#closedBy.error);
    const result = new Promise<T>((resolve, reject) => {
      let started = false;
      let share = 0;
      const advance = async (): Promise<boolean> => {
        try {
          if (signal?.aborted && (cancellable || !started)) {
            await slices.return(undefined as never); // true: the value of an abandoned generator is never read
            throw signal.reason;
          }
          started = true;
          const next = await slices.next();
          if (next.done === true) {
            resolve(next.value);
            return true;
          }
          share = next.value;
        } catch (error) {
          reject(error);
          return true;
        }
        try {
          onProgress?.(share);
          return false;
        } catch (error) {
          // The caller's fault is told to the caller; work that must not stop half way goes on all the same.
          reject(error);
          return cancellable;
        }
      };
      this.#tasks.push({ advance, abandon: reject });
    });
    this.wake();
    return result;
  }

  /** To be called when sampling work has come in. */
  wake(): void {
    if (this.#closedBy !== undefined) this.#sampling.failAll(this.#closedBy.error);
    else this.#running ??= this.#run();
  }

  /** Ends everything with this error once the slice that is running has ended; nothing new is taken. */
  async close(error: unknown): Promise<void> {
    this.#closedBy ??= { error };
    for (const task of this.#tasks.splice(0)) task.abandon(error);
    this.#sampling.failAll(error);
    await this.#running;
  }

  async #run(): Promise<void> {
    // The first turn is left to the caller, so that requests made together are found together.
    await nextTurn();
    while (this.#closedBy === undefined && (this.#tasks.length > 0 || !this.#sampling.idle)) {
      const [train, sample] = [this.#tasks.length > 0, !this.#sampling.idle];
      if (!train || !sample) this.#spent.training = this.#spent.sampling = 0;
      const type = train && (!sample || this.#spent.training <= this.#spent.sampling) ? 'training' : 'sampling';
      const startMs = performance.now();
      if (type === 'training') await this.#advanceTask();
      else await this.#sampling.runSlice().catch((error: unknown) => this.#sampling.failAll(error));
      const endMs = performance.now();
      this.#spent[type] += endMs - startMs;
      this.#onSlice?.({ type, startMs, endMs });
      await nextTurn();
    }
    this.#running = undefined;
  }

  async #advanceTask(): Promise<void> {
    const task = this.#tasks.shift();
    if (task === undefined || (await task.advance())) return;
    if (this.#closedBy === undefined) this.#tasks.push(task);
    else task.abandon(this.#closedBy.error);
  }
}
