/** Statistics of a pass over positions whose weight is not 0: how far the trained policy is from the one that sampled. */
import type { Datum, LossSpec } from '@loopwright/protocol';

export class RatioStatistics {
  #count = 0;
  #sum = 0;
  #min = Number.POSITIVE_INFINITY;
  #max = Number.NEGATIVE_INFINITY;
  #kl = 0;
  #clipped = 0;
  #referenceCount = 0;
  #referenceKl = 0;

  /** Adds a datum's positions; `logprobs` as computed in the pass. */
  add(datum: Datum, logprobs: Float32Array, loss: LossSpec): void {
    const { weights, refLogProb } = datum;
    const old = datum.logprobs?.data;
    // cross_entropy compares with no other policy, and may have several targets a token.
    if (loss.name === 'cross_entropy' || (old === undefined && refLogProb === undefined)) return;
    for (let i = 0; i < datum.modelInput.length; i++) {
      if (weights !== undefined && weights.data[i] === 0) continue;
      const now = logprobs[i]!;
      if (old !== undefined) {
        const ratio = Math.exp(now - old[i]!);
        this.#count++;
        this.#sum += ratio;
        this.#min = Math.min(this.#min, ratio);
        this.#max = Math.max(this.#max, ratio);
        this.#kl += old[i]! - now;
        if ('clipLowThreshold' in loss && (ratio < loss.clipLowThreshold || ratio > loss.clipHighThreshold))
          this.#clipped++;
      }
      if (refLogProb !== undefined) {
        this.#referenceCount++;
        this.#referenceKl += now - refLogProb.data[i]!;
      }
    }
  }

  /** Means are over positions with a weight that is not 0. */
  toMetrics(): Record<string, number> {
    return {
      ...(this.#count === 0
        ? {}
        : {
            'ratio/mean': this.#sum / this.#count,
            'ratio/min': this.#min,
            'ratio/max': this.#max,
            'actor/ppo_kl': this.#kl / this.#count,
            'actor/pg_clipfrac': this.#clipped / this.#count,
          }),
      ...(this.#referenceCount === 0 ? {} : { 'actor/ref_kl': this.#referenceKl / this.#referenceCount }),
    };
  }
}
