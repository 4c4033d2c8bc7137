/** Orders of rows: permutations that seed and epoch decide, and where a reading in one stands. */
import { complaint } from '@loopwright/protocol';
import { createRandom } from '../random.js';
import type { Dataset } from './dataset.js';
import { OrderedRows, type RowPosition } from './ordered-rows.js';
import type { DataRow } from './row.js';
import { fingerprint } from './row-hash.js';
import { indexRows, type RowIndex } from './row-index.js';

const defaultHeldBytes = 256 * 1024 * 1024;

export interface ShuffleOptions {
  /** An integer. With the epoch, it decides the order. */
  readonly seed: number;
  /** From 0, the default: each has its own order. */
  readonly epoch?: number;
  /** Goes on where an earlier reading stood. */
  readonly resume?: RowPosition;
  /**
   * Rows of compressed and Parquet files that are held in memory at a time; each such file is read once for so many bytes of its rows.
   * Default 256 MiB. The order is the same whatever it is.
   */
  readonly maxHeldBytes?: number;
  /** Ends the indexing, and readings of the rows. */
  readonly signal?: AbortSignal;
}

export async function shuffleRows<R extends DataRow>(
  data: Dataset<R>,
  options: ShuffleOptions,
): Promise<OrderedRows<R>> {
  checkOptions(options);
  const index = await indexRows(data, readOptions(options));
  return orderedRows(data, { index, order: permutation(index.size, options) }, options);
}

/** Fisher–Yates. */
export function permutation(size: number, { seed, epoch = 0 }: ShuffleOptions): Uint32Array {
  const random = createRandom(fingerprint(`${seed}:${epoch}`).low);
  const order = Uint32Array.from({ length: size }, (_, i) => i);
  for (let i = size - 1; i > 0; i--) {
    const j = random.integer(i + 1);
    [order[i], order[j]] = [order[j]!, order[i]!]; // both in range
  }
  return order;
}

/** Rows in an order, from where a saved position stands. @throws `data_invalid`, `invalid_argument` for one of other rows or options */
export function orderedRows<R extends DataRow>(
  data: Dataset<R>,
  { index, order }: { readonly index: RowIndex; readonly order: Uint32Array },
  { seed, epoch = 0, resume, maxHeldBytes = defaultHeldBytes, signal }: ShuffleOptions,
): OrderedRows<R> {
  const digest = orderDigest(index, order);
  const from = resume?.next ?? 0;
  const rows = new OrderedRows({ data, index, order, seed, epoch, digest, from, maxHeldBytes, signal });
  if (resume === undefined) return rows;
  const here = { seed, epoch, rows: index.size, digest };
  for (const [name, value] of Object.entries(here)) {
    const saved = resume[name as keyof typeof here]; // true: its own entries
    if (saved !== value) {
      throw complaint({
        code: name === 'rows' || name === 'digest' ? 'data_invalid' : 'invalid_argument',
        field: `resume.${name}`,
        expected: String(value),
        got: String(saved),
        remedy: 'resume with the data and the options that the position was saved with',
      });
    }
  }
  if (!(Number.isSafeInteger(resume.next) && resume.next >= 0 && resume.next <= index.size)) {
    const expected = `a whole number from 0 to ${index.size}`;
    throw complaint({ field: 'resume.next', expected, got: String(resume.next) });
  }
  return rows;
}

function orderDigest({ digest }: RowIndex, order: Uint32Array): string {
  let hash = Number.parseInt(digest, 16);
  for (const row of order) hash = Math.imul(hash ^ row, 0x01000193);
  return (hash >>> 0).toString(16).padStart(8, '0');
}

export function readOptions({ signal }: ShuffleOptions): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

export function checkOptions({ seed, epoch = 0, maxHeldBytes = defaultHeldBytes }: ShuffleOptions): void {
  if (!Number.isSafeInteger(seed)) throw complaint({ field: 'seed', expected: 'an integer', got: String(seed) });
  if (!Number.isSafeInteger(epoch) || epoch < 0) {
    throw complaint({ field: 'epoch', expected: 'a whole number from 0', got: String(epoch) });
  }
  if (!Number.isSafeInteger(maxHeldBytes) || maxHeldBytes < 1) {
    throw complaint({ field: 'maxHeldBytes', expected: 'a whole number from 1', got: String(maxHeldBytes) });
  }
}
