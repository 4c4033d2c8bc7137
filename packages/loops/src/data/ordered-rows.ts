/** Rows in another order than they lie in, by an index: fetched by place a few at a time, or picked out of readings of the whole. */
import { complaint } from '@loopwright/protocol';
import { throwIfCancelled } from './cancelled.js';
import type { Dataset } from './dataset.js';
import { heldBytes, pickRows } from './picked-rows.js';
import type { DataRow, JsonRow } from './row.js';
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
  readonly maxHeldBytes: number;
  readonly signal: AbortSignal | undefined;
}

/** Rows by source and offset, until they are given. */
type Picked = ReadonlyMap<number, Map<number, JsonRow>>;

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
    const { data, from, signal } = this.#parts;
    const accesses = new Map<number, RowAccess>();
    let next = from;
    this.#next = next;
    try {
      for (const [number, source] of data.parts.sources.entries()) {
        const access = await source.access?.();
        if (access !== undefined) accesses.set(number, access);
      }
      while (next < this.size) {
        const end = this.#heldEnd(next);
        const picked = await this.#pick(next, end);
        while (next < end) {
          throwIfCancelled(signal);
          const places = this.#batch(next, end);
          const rows = await Promise.all(
            places.map((place) => fetchRow(data, place, { picked, access: accesses.get(place.source) })),
          );
          for (const row of rows) {
            next += 1;
            this.#next = next;
            yield row;
          }
        }
      }
    } finally {
      for (const access of accesses.values()) await access[Symbol.asyncDispose]();
    }
  }

  #isPicked({ source }: IndexedPlace): boolean {
    return this.#parts.data.parts.sources[source]?.access === undefined;
  }

  /** Where the rows end of which those that must be picked are held at a time. */
  #heldEnd(start: number): number {
    const { index, order, maxHeldBytes } = this.#parts;
    let sizeBytes = 0;
    for (let at = start; at < order.length; at++) {
      const place = index.place(order[at]!);
      if (!this.#isPicked(place)) continue;
      sizeBytes += heldBytes(place);
      if (at > start && sizeBytes > maxHeldBytes) return at;
    }
    return order.length;
  }

  async #pick(start: number, end: number): Promise<Picked> {
    const { data, index, order, signal } = this.#parts;
    const wanted = new Map<number, Set<number>>();
    for (const row of order.subarray(start, end)) {
      const place = index.place(row);
      if (!this.#isPicked(place)) continue;
      const offsets = wanted.get(place.source) ?? new Set();
      wanted.set(place.source, offsets.add(place.offset));
    }
    const picked = new Map<number, Map<number, JsonRow>>();
    for (const [number, offsets] of wanted) {
      const source = data.parts.sources[number];
      if (source !== undefined) picked.set(number, await pickRows(source, offsets, signal));
    }
    return picked;
  }

  #batch(start: number, end: number): IndexedPlace[] {
    const { index, order } = this.#parts;
    const places: IndexedPlace[] = [];
    let sizeBytes = 0;
    for (let at = start; at < end && places.length < maxBatchRows; at++) {
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
  { picked, access }: { readonly picked: Picked; readonly access: RowAccess | undefined },
): Promise<R> {
  const file = data.files[place.source] ?? '';
  const held = picked.get(place.source);
  const row = held?.get(place.offset) ?? (await access?.row(place));
  held?.delete(place.offset);
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
