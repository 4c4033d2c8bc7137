/** A data set: rows of one or several sources, read from the beginning as often as one likes, with flat memory. */
import { cancelled, throwIfCancelled } from './cancelled.js';
import { checkColumns, type FieldColumns } from './columns.js';
import { type CurriculumOptions, curriculumRows } from './curriculum.js';
import { type DataHash, hashSources } from './data-hash.js';
import { type DetectedFormat, detectFormat } from './detect-format.js';
import { FingerprintTable } from './fingerprint-table.js';
import type { OrderedRows } from './ordered-rows.js';
import { type ShuffleOptions, shuffleRows } from './ordering.js';
import { type Checked, type DataRow, type JsonRow, type RowPlace, rowError } from './row.js';
import { contentId, fingerprint } from './row-hash.js';
import type { RowSource } from './source.js';
import { type SplitOptions, splitRows } from './split.js';
import { type OnReport, type OnRowError, type ReadingReport, reportText, Tally } from './tally.js';
import { type DataFormat, type FormatRows, typedRow } from './typed-rows.js';

export interface DatasetOptions {
  /** A field with a text or an integer that tells rows apart; without it, ids are hashes of the content. */
  readonly idField?: string;
  /** Columns that the file names otherwise than the formats do, such as `{ prompt: 'problem', answer: 'solution' }`. */
  readonly fields?: FieldColumns;
  /** Default `stop`. */
  readonly onRowError?: OnRowError;
  /** Told once at the end of each reading, an interrupted one too. By default, skipped rows are shown as a warning. */
  readonly onReport?: OnReport;
}

export interface ReadOptions {
  /** Default: that of the data set. */
  readonly onRowError?: OnRowError;
  readonly signal?: AbortSignal;
}

/** One pass over the rows, and what became of each line. */
export interface Reading<R> extends AsyncIterable<R> {
  /** As of now. */
  report(): ReadingReport;
}

/** A row of a reading, with where it can be found again. */
export interface FoundRow<R> {
  readonly row: R;
  readonly source: number;
  readonly offset: number;
  readonly sizeBytes: number;
}

/** A row that was read, as this data set shows it, or a reason not to. */
export type Shape<R> = (row: DataRow) => Checked<R> | 'elsewhere';

/** @internal what a data set is made of */
export interface DatasetParts<R extends DataRow> extends DatasetOptions {
  readonly sources: readonly RowSource[];
  readonly shape: Shape<R>;
}

export class Dataset<R extends DataRow = DataRow> implements AsyncIterable<R> {
  readonly parts: DatasetParts<R>;

  /** Use `openDataset` or {@link datasetOf}. */
  constructor(parts: DatasetParts<R>) {
    this.parts = parts;
  }

  /** Names of the sources, in order. */
  get files(): readonly string[] {
    return this.parts.sources.map(({ file }) => file);
  }

  /** Rows in the order of the files. */
  [Symbol.asyncIterator](): AsyncIterator<R> {
    return this.read()[Symbol.asyncIterator]();
  }

  /**
   * A reading from the beginning.
   *
   * @throws while it is read: `row_invalid`, `data_invalid`, `not_found`, `cancelled`
   * @example
   * const reading = data.read({ onRowError: 'skip' });
   * for await (const { row } of reading) console.log(Object.keys(row));
   * console.log(reading.report().errorCount);
   */
  read(options: ReadOptions = {}): Reading<R> {
    const tally = new Tally(options.onRowError ?? this.parts.onRowError ?? 'stop');
    const found = this.#find(tally, options.signal);
    return {
      report: () => tally.report(),
      async *[Symbol.asyncIterator]() {
        for await (const { row } of found) yield row;
      },
    };
  }

  /**
   * The format of the rows, by the fields of the first thousand.
   *
   * @throws `data_invalid` when there are no rows, none of a known format, or rows of several formats
   */
  format(options: { readonly signal?: AbortSignal } = {}): Promise<DetectedFormat> {
    return detectFormat(this, options);
  }

  /**
   * The same rows, checked and typed. Rows of another form are row errors.
   *
   * @example for await (const { messages } of data.as('chat')) console.log(messages.length);
   */
  as<F extends DataFormat>(format: F): Dataset<FormatRows[F]> {
    const check = typedRow(format);
    const { shape, fields = {} } = this.parts;
    return this.withShape((row) => {
      const shaped = shape(row);
      return shaped === 'elsewhere' || 'fault' in shaped ? shaped : check(shaped.value, fields);
    });
  }

  /** The same rows with other settings. */
  with(options: Omit<DatasetOptions, 'idField' | 'fields'>): Dataset<R> {
    return new Dataset({ ...this.parts, ...options });
  }

  /** @internal the same rows shown otherwise */
  withShape<S extends DataRow>(shape: Shape<S>): Dataset<S> {
    return new Dataset<S>({ ...this.parts, shape });
  }

  /**
   * The rows in an order that seed and epoch decide: any order of all rows, whatever the files are. The data is read once to index it (28
   * bytes a row). Then rows of plain JSONL files are fetched by place; compressed and Parquet files are read again for each
   * `maxHeldBytes` of rows.
   *
   * @throws `row_invalid` as in any reading; `data_invalid` for a position of other data, and for files that change while they are read
   * @example
   * const rows = await data.shuffled({ seed: 7, epoch: 2 });
   * for await (const row of rows) save(rows.position()); // go on later: shuffled({ seed: 7, epoch: 2, resume: position })
   */
  shuffled(options: ShuffleOptions): Promise<OrderedRows<R>> {
    return shuffleRows(this, options);
  }

  /**
   * The rows from easy to hard, or the other way: by a field or numbers by id, by measured pass rates, or file by file. Rows that are equally
   * hard, or of one stage, are shuffled by the seed.
   *
   * @throws as {@link Dataset.shuffled}; rows without difficulty are row errors
   * @example const rows = await data.curriculum({ passRates: await readPassRates('rates.jsonl'), stages: [0.8, 0.4], seed: 1 });
   */
  curriculum(options: CurriculumOptions): Promise<OrderedRows<R>> {
    return curriculumRows(this, options);
  }

  /**
   * Parts by hash. A row stays in its part when others are added; rows with the same prompt, or that share the field `by`, lie in one part.
   *
   * @throws `invalid_argument` for shares that don't sum to 1
   * @example const { train, test } = data.split({ parts: { train: 0.9, test: 0.1 } });
   */
  split<P extends string>(options: SplitOptions<P>): Readonly<Record<P, Dataset<R>>> {
    return splitRows(this, options);
  }

  /**
   * The SHA-256 of the files, for the record of a run. Parts and typed rows of a data set have that of the whole.
   *
   * @throws `not_found`, `cancelled`; `data_invalid` for sources of rows that come from no bytes
   * @example const { sha256, files } = await data.hash();
   */
  hash(options: { readonly signal?: AbortSignal } = {}): Promise<DataHash> {
    return hashSources(this.parts.sources, options);
  }

  /** A reading that says where each row lies. */
  find(options: ReadOptions = {}): Reading<FoundRow<R>> {
    const tally = new Tally(options.onRowError ?? this.parts.onRowError ?? 'stop');
    const found = this.#find(tally, options.signal);
    return { report: () => tally.report(), [Symbol.asyncIterator]: () => found };
  }

  /** A row of this data set from the JSON of a record. */
  shaped(row: JsonRow, at: RowPlace): Checked<R> | 'elsewhere' {
    const id = idOf(row, this.parts.idField);
    return 'fault' in id ? id : this.parts.shape({ id: id.value, at, row });
  }

  async *#find(tally: Tally, signal: AbortSignal | undefined): AsyncGenerator<FoundRow<R>> {
    const ids = this.parts.idField === undefined ? undefined : new FingerprintTable();
    try {
      for (const [number, source] of this.parts.sources.entries()) {
        for await (const records of source.read({ signal })) {
          throwIfCancelled(signal);
          for (const record of records) {
            if (record.type === 'blank') tally.count('blank');
            else if (record.type === 'error') tally.error(record.error);
            else {
              const { row, line, offset, sizeBytes } = record;
              const at = { file: source.file, line };
              const shaped = this.#once(ids, this.shaped(row, at));
              if (shaped === 'elsewhere') tally.count('elsewhere');
              else if ('fault' in shaped) tally.error(rowError(shaped.fault, at));
              else {
                tally.count('rows');
                yield { row: shaped.value, source: number, offset, sizeBytes };
              }
            }
          }
        }
      }
      tally.finish();
    } catch (error) {
      throw signal?.aborted === true ? cancelled(signal) : error;
    } finally {
      (this.parts.onReport ?? warnOfSkipped)(tally.report());
    }
  }

  /** The row, or the fault that its id was there before. */
  #once(ids: FingerprintTable | undefined, shaped: Checked<R> | 'elsewhere'): Checked<R> | 'elsewhere' {
    if (ids === undefined || shaped === 'elsewhere' || 'fault' in shaped) return shaped;
    const { at, id } = shaped.value;
    const earlier = ids.add(fingerprint(id), at.line);
    if (earlier === undefined) return shaped;
    return {
      fault: {
        field: this.parts.idField ?? 'id',
        expected: 'an id of its own',
        got: `that of line ${earlier}`,
        remedy: 'give each row its own id, or leave idField out to name rows by their content',
      },
    };
  }
}

/**
 * A data set over sources; `openDataset` makes one of files.
 *
 * @throws `invalid_argument` for `fields` that no format has
 * @example const data = datasetOf([textSource('{"prompt":"1+1="}', { file: 'in memory' })]);
 */
export function datasetOf(sources: readonly RowSource[], options: DatasetOptions = {}): Dataset {
  checkColumns(options.fields);
  return new Dataset({ ...options, sources, shape: (value) => ({ value }) });
}

function idOf(row: JsonRow, idField: string | undefined): Checked<string> {
  if (idField === undefined) return { value: contentId(row) };
  const id = Object.hasOwn(row, idField) ? row[idField] : undefined;
  if (typeof id === 'string' && id.trim() !== '') return { value: id };
  if (typeof id === 'number' && Number.isSafeInteger(id)) return { value: String(id) };
  return { fault: { field: idField, expected: 'a text or an integer that names the row', got: kind(id) } };
}

function kind(id: unknown): string {
  if (id === undefined) return 'nothing';
  return id === null ? 'null' : id === '' ? 'an empty text' : typeof id;
}

function warnOfSkipped(report: ReadingReport): void {
  if (report.errorCount > 0 && report.complete) console.warn(reportText(report));
}
