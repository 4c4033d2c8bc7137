/** Prompts that wait to be scored; those of one snapshot and padded length go together, oldest first. */
import { divergedWeights, padTo, type Scores, scoreBatch } from './score.js';
import type { Snapshot } from './snapshot.js';

interface Waiting {
  readonly snapshot: Snapshot;
  readonly prompt: Int32Array;
  readonly topK: number;
  readonly resolve: (scores: Scores) => void;
  readonly reject: (error: unknown) => void;
}

/** Tokens that one slice scores at most, padding included (one longer prompt goes by itself). */
const sliceTokens = 1024;

export class ScoreQueue {
  readonly #waiting = new Set<Waiting>();

  get idle(): boolean {
    return this.#waiting.size === 0;
  }

  /** Scores a prompt in one of the next slices. */
  submit(
    prompt: Int32Array,
    {
      snapshot,
      topK,
      signal,
    }: { readonly snapshot: Snapshot; readonly topK: number; readonly signal?: AbortSignal | undefined },
  ): Promise<Scores> {
    return new Promise((resolve, reject) => {
      const cancel = () => {
        if (this.#waiting.delete(waiting)) waiting.reject(signal?.reason);
      };
      const settled = () => signal?.removeEventListener('abort', cancel);
      const waiting: Waiting = {
        snapshot,
        prompt,
        topK,
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
    const batch: Waiting[] = [];
    for (const next of this.#waiting) {
      const first = batch[0] ?? next;
      const length = padTo(next.prompt.length);
      if (next.snapshot !== first.snapshot || next.topK !== first.topK || length !== padTo(first.prompt.length))
        continue;
      if (batch.length > 0 && (batch.length + 1) * length > sliceTokens) break;
      batch.push(next);
    }
    const first = batch[0];
    if (first === undefined) return;
    for (const taken of batch) this.#waiting.delete(taken);
    try {
      const scores = await scoreBatch(
        first.snapshot,
        batch.map(({ prompt }) => prompt),
        first.topK,
      );
      batch.forEach((taken, i) => {
        const found = scores[i];
        if (found === undefined) taken.reject(divergedWeights());
        else taken.resolve(found);
      });
    } catch (error) {
      for (const taken of batch) taken.reject(error);
    }
  }
}
