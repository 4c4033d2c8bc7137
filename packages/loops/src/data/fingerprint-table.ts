/** A set of fingerprints with a number for each, in flat memory: 12 bytes an entry, at most 24 with the room that it grows by. */
import type { Fingerprint } from './row-hash.js';

const maxLoad = 0.6;
const firstCapacity = 1024;

export class FingerprintTable {
  #high = new Uint32Array(firstCapacity);
  #low = new Uint32Array(firstCapacity);
  /** 0 where nothing is; else the number plus one. */
  #numbers = new Uint32Array(firstCapacity);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** @returns the number that was there before, which stays; undefined when it was added */
  add(print: Fingerprint, number: number): number | undefined {
    const slot = this.#slot(print);
    const found = this.#numbers[slot]!;
    if (found !== 0) return found - 1;
    this.#put(slot, print, number + 1);
    this.#size += 1;
    if (this.#size > maxLoad * this.#numbers.length) this.#grow();
    return undefined;
  }

  get(print: Fingerprint): number | undefined {
    const found = this.#numbers[this.#slot(print)]!;
    return found === 0 ? undefined : found - 1;
  }

  #put(slot: number, { high, low }: Fingerprint, stored: number): void {
    this.#high[slot] = high;
    this.#low[slot] = low;
    this.#numbers[slot] = stored;
  }

  /** Where it is, or where it would be put. */
  #slot({ high, low }: Fingerprint): number {
    const mask = this.#numbers.length - 1;
    let slot = low & mask;
    while (this.#numbers[slot] !== 0 && (this.#high[slot] !== high || this.#low[slot] !== low))
      slot = (slot + 1) & mask;
    return slot;
  }

  #grow(): void {
    const [highs, lows, numbers] = [this.#high, this.#low, this.#numbers];
    this.#high = new Uint32Array(highs.length * 2);
    this.#low = new Uint32Array(highs.length * 2);
    this.#numbers = new Uint32Array(highs.length * 2);
    for (let i = 0; i < numbers.length; i++) {
      if (numbers[i] === 0) continue;
      const print = { high: highs[i]!, low: lows[i]! };
      this.#put(this.#slot(print), print, numbers[i]!);
    }
  }
}
