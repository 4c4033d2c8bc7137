/**
 * Keys and values of the rows that are being decoded: for each layer one array of keys and one of values [rows, K, T, d].
 *
 * T grows in steps; the arrays are stretched in place. Positions at or beyond a row's length hold old finite numbers, which the mask
 * multiplies by exactly 0; where a model gave other ones, they are scrubbed before the rows go on.
 */
import { LoopwrightError } from '@loopwright/protocol';
import type { ModelConfig } from '../models/config.js';

/**
 * Positions are added in steps of this. Sums over positions go in strides of 32 or 64 by the kind of processor: with whole strides,
 * more positions (of other rows, masked here) never change the order of a sum, so that neighbours change no bit.
 */
const positionStep = 64;
/** Half as much again is allocated, so that a growing batch is not copied at each step; untouched pages cost nothing. */
export const spareRoom = 1.5;

export class RowCache {
  readonly #arrays: Float32Array[];
  readonly #heads: number;
  readonly #width: number;
  #rows = 0;
  #positions = 0;

  constructor({ layers, kvHeads, headDim }: ModelConfig) {
    this.#heads = kvHeads;
    this.#width = headDim;
    this.#arrays = Array.from({ length: 2 * layers }, () => new Float32Array(0));
  }

  /** T: positions that the arrays have room for in each row. */
  get positions(): number {
    return this.#positions;
  }

  /** The first `rows` rows of array `index` (keys of layer l at 2l, values at 2l+1), row-major [rows, K, T, d]. */
  view(index: number, rows: number): Float32Array {
    return this.#arrays[index]!.subarray(0, rows * this.#heads * this.#positions * this.#width);
  }

  /**
   * Makes room for that many rows of that many positions; what is there keeps its place.
   *
   * @throws `out_of_memory`, and then nothing has changed
   */
  reserve(rows: number, positions: number): void {
    const T = Math.max(this.#positions, Math.ceil(positions / positionStep) * positionStep);
    const needed = Math.max(rows, this.#rows) * this.#heads * T * this.#width;
    const stretch = T !== this.#positions && this.#rows > 0;
    const targets = this.#arrays.map((array) => (array.length < needed ? allocate(needed) : array));
    this.#arrays.forEach((array, index) => {
      const target = targets[index]!;
      if (stretch) this.#stretch(array, target, T);
      else if (target !== array)
        target.set(array.subarray(0, this.#rows * this.#heads * this.#positions * this.#width));
      this.#arrays[index] = target;
    });
    this.#positions = T;
    this.#rows = Math.max(this.#rows, rows);
  }

  #stretch(from: Float32Array, to: Float32Array, T: number): void {
    const [oldSize, newSize] = [this.#positions * this.#width, T * this.#width];
    // From the last to the first, so that in place no row is overwritten before it has moved.
    for (let i = this.#rows * this.#heads - 1; i >= 0; i--) {
      if (from === to) to.copyWithin(i * newSize, i * oldSize, (i + 1) * oldSize);
      else to.set(from.subarray(i * oldSize, (i + 1) * oldSize), i * newSize);
    }
  }

  /** Rows in use from now on; the ones beyond are forgotten. */
  keepRows(rows: number): void {
    this.#rows = rows;
  }

  copyRow(from: number, to: number): void {
    const size = this.#heads * this.#positions * this.#width;
    for (const array of this.#arrays) array.copyWithin(to * size, from * size, (from + 1) * size);
  }

  /** Writes positions 0 to `count` − 1 of a row from [K, stride, d] of a prefill. */
  writePrompt(
    index: number,
    row: number,
    source: Float32Array,
    { stride, count }: { stride: number; count: number },
  ): void {
    const array = this.#arrays[index]!;
    for (let head = 0; head < this.#heads; head++) {
      const from = head * stride * this.#width;
      array.set(
        source.subarray(from, from + count * this.#width),
        (row * this.#heads + head) * this.#positions * this.#width,
      );
    }
  }

  /** Writes one position of each row from `rows` [B, 2·layers, K·d] of a decoding step. */
  writeStep(rows: Float32Array, lengths: readonly number[]): void {
    const [heads, width, T] = [this.#heads, this.#width, this.#positions];
    const count = this.#arrays.length;
    this.#arrays.forEach((array, index) => {
      for (let row = 0; row < lengths.length; row++) {
        let from = (row * count + index) * heads * width;
        let to = (row * heads * T + lengths[row]!) * width;
        for (let head = 0; head < heads; head++) {
          array.set(rows.subarray(from, from + width), to); // two fifths of the time of one number after the other
          from += width;
          to += T * width;
        }
      }
    });
  }

  /** Puts 0 in place of NaN and infinity, which a mask cannot hide: 0 · ∞ is NaN. */
  scrub(): void {
    for (const array of this.#arrays)
      for (let i = 0; i < array.length; i++) if (!Number.isFinite(array[i])) array[i] = 0;
  }

  /** Forgets all rows, keeping the memory. */
  clear(): void {
    this.#rows = 0;
    this.#positions = 0;
  }
}

function allocate(needed: number): Float32Array {
  try {
    return new Float32Array(Math.ceil(needed * spareRoom));
  } catch (cause) {
    throw new LoopwrightError({
      code: 'out_of_memory',
      message: `engine: no memory for ${needed * 4} bytes of keys and values; sample fewer sequences at once, or shorter ones`,
      cause,
    });
  }
}
