/** Orders of rows: shuffled by a seed, or from easy to hard. */
import { complaint } from '@loopwright/protocol';
import { createRandom } from '../random.js';
import { readNamed } from './columns.js';
import type { Dataset } from './dataset.js';
import { OrderedRows, type RowPosition } from './ordered-rows.js';
import { type DataRow, kindOf } from './row.js';
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

export interface CurriculumOptions extends ShuffleOptions {
  /** A field with a number, or numbers by id, as of a file beside the data. */
  readonly by: string | ReadonlyMap<string, number>;
  /** Default `easy`: small numbers first. */
  readonly first?: 'easy' | 'hard';
}

export async function shuffleRows<R extends DataRow>(
  data: Dataset<R>,
  options: ShuffleOptions,
): Promise<OrderedRows<R>> {
  checkOptions(options);
  const index = await indexRows(data, readOptions(options));
  return ordered(data, index, permutation(index.size, options), options);
}

/** Rows of the same difficulty are shuffled by the seed. */
export async function curriculumRows<R extends DataRow>(
  data: Dataset<R>,
  options: CurriculumOptions,
): Promise<OrderedRows<R>> {
  checkOptions(options);
  const { by, first = 'easy' } = options;
  const difficulties: number[] = [];
  const { shape, fields = {} } = data.parts;
  const difficultyOf = ({ id, row }: DataRow): unknown =>
    typeof by === 'string' ? readNamed(row, by, fields) : by.get(id);
  const graded = data.withShape((row) => {
    const shaped = shape(row);
    if (shaped === 'elsewhere' || 'fault' in shaped) return shaped;
    const difficulty = difficultyOf(row);
    if (typeof difficulty === 'number' && Number.isFinite(difficulty)) return shaped;
    const field = typeof by === 'string' ? by : 'difficulty';
    return { fault: { field, expected: 'a number that says how hard the row is', got: kindOf(difficulty) } };
  });
  const index = await indexRows(graded, readOptions(options), ({ row }) => {
    difficulties.push(Number(difficultyOf(row)));
  });
  const order = permutation(index.size, options);
  const ranks = new Uint32Array(order.length);
  order.forEach((row, rank) => {
    ranks[row] = rank;
  });
  const sign = first === 'easy' ? 1 : -1;
  order.sort((a, b) => sign * (difficulties[a]! - difficulties[b]!) || ranks[a]! - ranks[b]!);
  return ordered(graded, index, order, options);
}

/** Fisher–Yates. */
function permutation(size: number, { seed, epoch = 0 }: ShuffleOptions): Uint32Array {
  const random = createRandom(fingerprint(`${seed}:${epoch}`).low);
  const order = Uint32Array.from({ length: size }, (_, i) => i);
  for (let i = size - 1; i > 0; i--) {
    const j = random.integer(i + 1);
    [order[i], order[j]] = [order[j]!, order[i]!]; // both in range
  }
  return order;
}

function ordered<R extends DataRow>(
  data: Dataset<R>,
  index: RowIndex,
  order: Uint32Array,
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

function readOptions({ signal }: ShuffleOptions): { readonly signal?: AbortSignal } {
  return signal === undefined ? {} : { signal };
}

function checkOptions({ seed, epoch = 0, maxHeldBytes = defaultHeldBytes }: ShuffleOptions): void {
  if (!Number.isSafeInteger(seed)) throw complaint({ field: 'seed', expected: 'an integer', got: String(seed) });
  if (!Number.isSafeInteger(epoch) || epoch < 0) {
    throw complaint({ field: 'epoch', expected: 'a whole number from 0', got: String(epoch) });
  }
  if (!Number.isSafeInteger(maxHeldBytes) || maxHeldBytes < 1) {
    throw complaint({ field: 'maxHeldBytes', expected: 'a whole number from 1', got: String(maxHeldBytes) });
  }
}
