/** What tells lists of numbers apart without keeping them. */

/** Two hashes of 32 bits of what was added, in order (FNV-1a, and a multiplication with a shift). */
export class TwoHashes {
  #a = 0x811c9dc5;
  #b = 0x9e3779b9;

  add(value: number): void {
    this.#a = Math.imul(this.#a ^ value, 0x01000193);
    this.#b = Math.imul(this.#b ^ value, 0x85ebca6b) ^ (this.#b >>> 15);
  }

  /** All 64 bits. */
  get text(): string {
    return `${this.#a >>> 0} ${this.#b >>> 0}`;
  }

  /** 53 of them: a whole number that JavaScript holds. A million of them meet by chance once in ten thousand times. */
  get number(): number {
    return (this.#a >>> 0) * 2 ** 21 + ((this.#b >>> 0) & (2 ** 21 - 1));
  }
}
