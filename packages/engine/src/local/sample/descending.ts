/**
 * Logits from the largest down, sorted no further than they are asked for: those near the largest are sorted first, then those in
 * a band twice as wide below them, and so on. The likeliest hundred of 49,152 lie in one or two bands, each found in one pass.
 */
export class Descending {
  readonly #logits: Float32Array;
  readonly #sorted: Float32Array;
  #count = 0;
  /** Every logit from here up is sorted. */
  #floor = Number.POSITIVE_INFINITY;
  /** The largest that is not sorted yet. */
  #next: number;
  #width = 4;

  /** @param max the largest of the logits, none of which is NaN; finite */
  constructor(logits: Float32Array, max: number) {
    this.#logits = logits;
    this.#next = max;
    this.#sorted = new Float32Array(logits.length);
  }

  /** The logit that `rank` others (0 to V − 1) come before. */
  at(rank: number): number {
    while (rank >= this.#count) this.#sortNextBand();
    return this.#sorted[rank]!;
  }

  #sortNextBand(): void {
    const ceiling = this.#floor;
    const floor = this.#next - this.#width;
    let end = this.#count;
    let next = Number.NEGATIVE_INFINITY;
    for (let id = 0; id < this.#logits.length; id++) {
      const logit = this.#logits[id]!;
      if (logit >= ceiling) continue;
      if (logit >= floor) this.#sorted[end++] = logit;
      else if (logit > next) next = logit;
    }
    this.#sorted.subarray(this.#count, end).sort().reverse();
    [this.#count, this.#floor, this.#next] = [end, floor, next];
    this.#width *= 2;
  }
}
