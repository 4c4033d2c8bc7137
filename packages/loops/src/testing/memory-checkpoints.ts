/** Checkpoints of a bandit, as JSON text: what another process would read. */
import type { Checkpoints, LoopPosition } from '../training/checkpoints.js';
import { Bandit, type BanditOptions, type Weights } from './bandit.js';

interface Saved {
  readonly position: LoopPosition;
  readonly weights: Weights;
}

/** The newest checkpoint, which outlives the bandit that made it. */
export class MemoryCheckpoints {
  /** Steps after which was saved. */
  readonly steps: number[] = [];
  #saved: string | undefined;

  get saved(): Saved | undefined {
    return this.#saved === undefined ? undefined : (JSON.parse(this.#saved) as Saved); // true: written below
  }

  /** A bandit that goes on from what was saved, and what its loop needs. */
  open({ every, onCall }: { readonly every: number } & Pick<BanditOptions, 'onCall'>): {
    readonly training: Bandit;
    readonly checkpoints: Checkpoints;
  } {
    const { saved } = this;
    const call = onCall === undefined ? {} : { onCall };
    const training = new Bandit({ ...call, ...(saved && { weights: saved.weights }) });
    const checkpoints: Checkpoints = {
      every,
      resumed: saved?.position,
      save: async (position, options) => {
        const weights = await training.saveState(options);
        this.#saved = JSON.stringify({ position, weights });
        this.steps.push(position.step);
      },
      note: () => `goes on after step ${this.saved?.position.step ?? 0}`,
    };
    return { training, checkpoints };
  }
}
