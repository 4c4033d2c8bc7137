/** Prompts that wait to be scored, oldest first, slice by slice. */
import type { SamplerEvent } from './events.js';
import { type ScoreOptions, type Scores, scoreInSlices } from './score.js';
import type { Snapshot } from './snapshot.js';

export interface ScoreSubmission extends Pick<ScoreOptions, 'topK' | 'targets'> {
  readonly snapshot: Snapshot;
  readonly signal?: AbortSignal | undefined;
}

interface Waiting {
  readonly slices: ReturnType<typeof scoreInSlices>;
  readonly resolve: (scores: Scores) => void;
  readonly reject: (error: unknown) => void;
}

export class ScoreQueue {
  readonly #waiting = new Set<Waiting>();
  readonly #onEvent: ((event: SamplerEvent) => void) | undefined;

  constructor(onEvent?: (event: SamplerEvent) => void) {
    this.#onEvent = onEvent;
  }

  get idle(): boolean {
    return this.#waiting.size === 0;
  }

  /** Scores a prompt in some of the next slices. */
  submit(prompt: Int32Array, { snapshot, topK, targets, signal }: ScoreSubmission): Promise<Scores> {
    return new Promise((resolve, reject) => {
      const cancel = () => {
        if (this.#waiting.delete(waiting)) waiting.reject(signal?.reason);
      };
      const settled = () => signal?.removeEventListener('abort', cancel);
      const waiting: Waiting = {
        slices: scoreInSlices(snapshot, prompt, { topK, targets }),
        resolve: (scores) => {
          settled();
          resolve(scores);
        },
        reject: (error) => {
          settled();
          reject(error);
        },
      };
      this.#waiting.add(waiting);
      signal?.addEventListener('abort', cancel, { once: true });
    });
  }

  failAll(error: unknown): void {
    for (const waiting of this.#waiting) waiting.reject(error);
    this.#waiting.clear();
  }

  async runSlice(): Promise<void> {
    const [next] = this.#waiting;
    if (next === undefined) return;
    this.#onEvent?.({ type: 'score-slice' });
    try {
      const { done, value } = await next.slices.next();
      if (done !== true) return;
      next.resolve(value);
    } catch (error) {
      next.reject(error);
    }
    this.#waiting.delete(next);
  }
}
