/** Where rows come from: something that can be read from the beginning and, of some, in any place. */
import type { JsonRow, RowError } from './row.js';

/** Where a record lies within its source. */
export interface RecordPlace {
  /** From 1. */
  readonly line: number;
  /** Of its first byte, for sources that are read by bytes; else from 0 by record. */
  readonly offset: number;
  /** About what it takes in memory. */
  readonly sizeBytes: number;
}

export type SourceRecord = RecordPlace &
  (
    | { readonly type: 'row'; readonly row: JsonRow }
    | { readonly type: 'error'; readonly error: RowError }
    /** A line with nothing on it. */
    | { readonly type: 'blank' }
  );

export interface ReadSourceOptions {
  readonly signal?: AbortSignal | undefined;
  /** Whether the record at an offset is wanted: others may be left out, to save the work of decoding them. */
  readonly only?: (offset: number) => boolean;
}

/** Of the bytes of a file as they lie there: compressed, where it is. */
export interface BytesHash {
  /** 64 hexadecimal digits, as `sha256sum` prints them. */
  readonly sha256: string;
  readonly sizeBytes: number;
}

/** Rows by place, in any order, several at once. Dispose it when done. */
export interface RowAccess extends AsyncDisposable {
  /** @throws `row_invalid` when the row isn't there any more: the file has changed */
  row(place: RecordPlace): Promise<JsonRow>;
}

export interface RowSource {
  /** As it was named. */
  readonly file: string;
  /** All records in order, in batches; `break` closes what is open. */
  read(options?: ReadSourceOptions): AsyncIterable<readonly SourceRecord[]>;
  /** Random access; absent where there is none, as of compressed files: rows in another order are then picked out of readings. */
  access?(): Promise<RowAccess>;
  /** Of the bytes that the rows are read from. */
  readonly hash?: (options?: ReadSourceOptions) => Promise<BytesHash>;
}
