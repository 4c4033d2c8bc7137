/** Rows in another order than they lie in: fetched by place, a few at a time, from an index. */
import { complaint } from '@loopwright/protocol';
import type { Dataset } from './dataset.js';
import type { DataRow } from './row.js';
import { checkOf, type IndexedPlace, type RowIndex } from './row-index.js';
import type { RowAccess } from './source.js';

/** Where a reading in some order stands: plain JSON, to be saved beside a checkpoint. */
export interface RowPosition {
  readonly seed: number;
  readonly epoch: number;
  /** Rows that were given: the next has this number, from 0. */
  readonly next: number;
  readonly rows: number;
  /** Tells whether the rows and their order are still the same. */
  readonly digest: string;
}

export interface OrderParts<R extends DataRow> {
  readonly data: Dataset<R>;
  readonly index: RowIndex;
  readonly order: Uint32Array;
  readonly seed: number;
  readonly epoch: number;
  readonly from: number;
  /** Of the rows and of their order. */
  readonly digest: string;
}

const maxBatchRows = 64;
const maxBatchBytes = 16 * 1024 * 1024;

export class OrderedRows<R extends DataRow> implements AsyncIterable<R> {
  readonly #parts: OrderParts<R>;
  #next: number;

  /** @internal */
  constructor(parts: OrderParts<R>) {
    this.#parts = parts;
    this.#next = parts.from;
  }

  /** All of them, those before the position too. */
  get size(): number {
    return this.#parts.order.length;
  }

  /** After the last row that was given, of the latest iteration. */
  position(): RowPosition {
    const { seed, epoch, index, digest } = this.#parts;
    return { seed, epoch, next: this.#next, rows: index.size, digest };
  }

  /** From the position that it was made with, each time. @throws `data_invalid` when a file has changed since */
  async *[Symbol.asyncIterator](): AsyncIterator<R> {
    const { data, from } = this.#parts;
    const accesses = new Map<number, RowAccess>();
    this.#next = from;
    try {
      for (const [number, source] of data.parts.sources.entries()) {
        const access = await source.access?.();
        if (access !== undefined) accesses.set(number, access);
      }
      while (this.#next < this.size) {
        const places = this.#batch(this.#next);
        const rows = await Promise.all(places.map((place) => fetchRow(data, place, accesses.get(place.source))));
        for (const row of rows) {
          this.#next += 1;
          yield row;
        }
      }
    } finally {
      for (const access of accesses.values()) await access[Symbol.asyncDispose]();
    }
  }

  #batch(start: number): IndexedPlace[] {
    const { index, order } = this.#parts;
    const places: IndexedPlace[] = [];
    let sizeBytes = 0;
    for (let at = start; at < order.length && places.length < maxBatchRows; at++) {
      const place = index.place(order[at]!);
      sizeBytes += place.sizeBytes;
      if (places.length > 0 && sizeBytes > maxBatchBytes) break;
      places.push(place);
    }
    return places;
  }
}

async function fetchRow<R extends DataRow>(
  data: Dataset<R>,
  place: IndexedPlace,
  access: RowAccess | undefined,
): Promise<R> {
  const file = data.files[place.source] ?? '';
  const row = await access?.row(place);
  const shaped = row === undefined ? 'elsewhere' : data.shaped(row, { file, line: place.line });
  if (shaped !== 'elsewhere' && 'value' in shaped && checkOf(shaped.value.id) === place.check) return shaped.value;
  throw complaint({
    code: 'data_invalid',
    field: `${file}:${place.line}`,
    expected: 'the row that was there when the file was indexed',
    got: 'another',
    remedy: 'start the reading again, and write new data to a new file',
  });
}
