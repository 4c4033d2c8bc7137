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
}

export interface SamplingWork {
  readonly idle: boolean;
  runSlice(): Promise<void>;
}

export class SliceLoop {
  readonly #tasks: Task[] = [];
  readonly #sampling: SamplingWork;
  readonly #onSlice: ((event: SliceEvent) => void) | undefined;
  /** Milliseconds that each kind has had, counted from when both last had work. */
  readonly #spent = { training: 0, sampling: 0 };
  #running = false;

  constructor(sampling: SamplingWork, onSlice?: (event: SliceEvent) => void) {
    this.#sampling = sampling;
    this.#onSlice = onSlice;
  }

  /** Runs the slices in turn with other work; resolves with their result. */
  submit<T>(slices: Slices<T>, { signal, onProgress, cancellable = true }: SubmitOptions = {}): Promise<T> {
    const result = new Promise<T>((resolve, reject) => {
      let started = false;
      const advance = async (): Promise<boolean> => {
        try {
          if (signal?.aborted && (cancellable || !started)) {
            await slices.return(undefined as never); // true: the value of an abandoned generator is never read
            throw signal.reason;
          }
          started = true;
          const next = await slices.next();
          if (next.done === true) resolve(next.value);
          else onProgress?.(next.value);
          return next.done === true;
        } catch (error) {
          reject(error);
          return true;
        }
      };
      this.#tasks.push({ advance });
    });
    this.wake();
    return result;
  }

  /** To be called when sampling work has come in. */
  wake(): void {
    if (this.#running) return;
    this.#running = true;
    void this.#run();
  }

  async #run(): Promise<void> {
    // The first turn is left to the caller, so that requests made together are found together.
    await nextTurn();
    while (this.#tasks.length > 0 || !this.#sampling.idle) {
      const [train, sample] = [this.#tasks.length > 0, !this.#sampling.idle];
      if (!train || !sample) this.#spent.training = this.#spent.sampling = 0;
      const type = train && (!sample || this.#spent.training <= this.#spent.sampling) ? 'training' : 'sampling';
      const startMs = performance.now();
      if (type === 'training') {
        const task = this.#tasks.shift();
        if (task !== undefined && !(await task.advance())) this.#tasks.push(task);
      } else await this.#sampling.runSlice();
      const endMs = performance.now();
      this.#spent[type] += endMs - startMs;
      this.#onSlice?.({ type, startMs, endMs });
      await nextTurn();
    }
    this.#running = false;
  }
}
