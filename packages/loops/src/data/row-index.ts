/** Where each row of a data set lies, in flat memory: 24 bytes a row. */
import type { Dataset, FoundRow, ReadOptions } from './dataset.js';
import type { DataRow } from './row.js';

type Column = Float64Array<ArrayBuffer> | Uint32Array<ArrayBuffer>;

const firstCapacity = 1024;

/** A number for each row. */
class GrowingColumn<C extends Column> {
  #values: C;
  readonly #make: (length: number) => C;

  constructor(make: (length: number) => C) {
    this.#make = make;
    this.#values = make(firstCapacity);
  }

  set(at: number, value: number): void {
    if (at >= this.#values.length) {
      const larger = this.#make(this.#values.length * 2);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values[at] = value;
  }

  get(at: number): number {
    return this.#values[at] ?? 0;
  }
}

const wide = () => new GrowingColumn((length) => new Float64Array(length));
const narrow = () => new GrowingColumn((length) => new Uint32Array(length));

export interface IndexedPlace {
  readonly source: number;
  readonly offset: number;
  readonly sizeBytes: number;
  readonly line: number;
  /** Of the id: tells whether the row that is found there is still the same. */
  readonly check: number;
}

export class RowIndex {
  readonly #offsets = wide();
  readonly #sizes = narrow();
  readonly #lines = narrow();
  readonly #sources = narrow();
  readonly #checks = narrow();
  #size = 0;
  #digest = 0x811c9dc5;

  get size(): number {
    return this.#size;
  }

  /** The same for the same rows in the same order. */
  get digest(): string {
    return this.#digest.toString(16).padStart(8, '0');
  }

  add({ row, source, offset, sizeBytes }: FoundRow<DataRow>): void {
    const at = this.#size;
    const check = checkOf(row.id);
    this.#offsets.set(at, offset);
    this.#sizes.set(at, sizeBytes);
    this.#lines.set(at, row.at.line);
    this.#sources.set(at, source);
    this.#checks.set(at, check);
    this.#digest = Math.imul(this.#digest ^ check, 0x01000193) >>> 0;
    this.#size += 1;
  }

  place(at: number): IndexedPlace {
    return {
      source: this.#sources.get(at),
      offset: this.#offsets.get(at),
      sizeBytes: this.#sizes.get(at),
      line: this.#lines.get(at),
      check: this.#checks.get(at),
    };
  }
}

/** 32 bits of an id (FNV-1a). */
export function checkOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < id.length; i++) hash = Math.imul(hash ^ id.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}

/**
 * Reads the data once.
 *
 * @param each told of every row, in order
 */
export async function indexRows<R extends DataRow>(
  data: Dataset<R>,
  options: ReadOptions,
  each: (found: FoundRow<R>) => void = () => undefined,
): Promise<RowIndex> {
  const index = new RowIndex();
  for await (const found of data.find(options)) {
    index.add(found);
    each(found);
  }
  return index;
}
