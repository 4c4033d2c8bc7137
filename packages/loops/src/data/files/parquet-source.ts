/** Parquet files as sources: one row group in memory at a time. */
import { complaint } from '@loopwright/protocol';
import { asyncBufferFromFile, type FileMetaData, parquetMetadataAsync, parquetReadObjects } from 'hyparquet';
import { compressors } from 'hyparquet-compressors';
import { type Checked, type JsonRow, type JsonValue, rowError } from '../row.js';
import type { RowSource, SourceRecord } from '../source.js';
import { asFileError, type FileSourceOptions, hashFile } from './file-source.js';

/** Rows in order. There is no access by row: a single one costs the decoding of its whole group. Groups without a wanted row are left out. */
export function parquetFile(file: string, { path = file }: Pick<FileSourceOptions, 'path'> = {}): RowSource {
  return {
    file,
    hash: ({ signal } = {}) => hashFile(path, signal),
    async *read({ signal, only = () => true } = {}) {
      const buffer = await readable(file, () => asyncBufferFromFile(path));
      const metadata: FileMetaData = await readable(file, () => parquetMetadataAsync(buffer));
      let start = 0;
      for (const { num_rows: count } of metadata.row_groups) {
        signal?.throwIfAborted();
        const [rowStart, rowEnd] = [start, start + Number(count)];
        start = rowEnd;
        const wanted = Array.from({ length: Number(count) }, (_, i) => rowStart + i).filter(only);
        if (wanted.length === 0) continue;
        // Bytes that the file doesn't call text stay bytes, and are refused below.
        const options = { file: buffer, metadata, rowStart, rowEnd, compressors, utf8: false };
        const rows = await readable(file, () => parquetReadObjects(options));
        if (rows.length !== Number(count)) throw damaged(file, `a group of ${rows.length} rows instead of ${count}`);
        yield wanted.map((offset) => record(file, rows[offset - rowStart], offset));
      }
    },
  };
}

function record(file: string, row: unknown, offset: number): SourceRecord {
  const checked = asJson(row, '');
  const place = { line: offset + 1, offset, sizeBytes: 'value' in checked ? sizeOf(checked.value) : 0 };
  if ('value' in checked) return { ...place, type: 'row', row: checked.value as JsonRow }; // true: rows are read as objects
  return { ...place, type: 'error', error: rowError(checked.fault, { file, line: place.line }) };
}

/** About what a value takes in memory: its texts and keys, and 16 bytes for each value. */
function sizeOf(value: JsonValue): number {
  if (typeof value === 'string') return 16 + value.length;
  if (typeof value !== 'object' || value === null) return 16;
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + sizeOf(item), 16);
  return Object.entries(value).reduce((sum, [key, inner]) => sum + key.length + sizeOf(inner), 16);
}

/** A value of a column as JSON: what JSON has no form for is a fault, but dates, which are ISO texts. */
function asJson(value: unknown, field: string): Checked<JsonValue> {
  if (value === undefined || value === null) return { value: null };
  if (typeof value === 'string' || typeof value === 'boolean') return { value };
  if (typeof value === 'number' || typeof value === 'bigint') {
    const number = Number(value);
    if (Number.isFinite(number) && (typeof value === 'number' || Number.isSafeInteger(number))) {
      return { value: number };
    }
    const got = typeof value === 'bigint' ? 'a larger one, which would be rounded' : String(value);
    return { fault: { field, expected: 'a number that JSON has, integers up to 2^53 - 1', got } };
  }
  if (value instanceof Date && !Number.isNaN(value.getTime())) return { value: value.toISOString() };
  if (Array.isArray(value)) return asList(value, field);
  if (Object.getPrototypeOf(value) === Object.prototype) return asFields(value as object, field); // true: not null
  const remedy = 'leave the column out, or write it as text';
  return { fault: { field, expected: 'texts, numbers, lists and structs', got: 'bytes', remedy } };
}

function asList(list: readonly unknown[], field: string): Checked<JsonValue> {
  const values: JsonValue[] = [];
  for (const [i, item] of list.entries()) {
    const checked = asJson(item, `${field}[${i}]`);
    if ('fault' in checked) return checked;
    values.push(checked.value);
  }
  return { value: values };
}

function asFields(fields: object, field: string): Checked<JsonValue> {
  const values: (readonly [string, JsonValue])[] = [];
  for (const [key, inner] of Object.entries(fields)) {
    const checked = asJson(inner, field === '' ? key : `${field}.${key}`);
    if ('fault' in checked) return checked;
    values.push([key, checked.value]);
  }
  return { value: Object.fromEntries(values) };
}

async function readable<T>(file: string, read: () => T | Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    const known = asFileError(error, file);
    throw known === error ? damaged(file, 'one that cannot be decoded', error) : known;
  }
}

function damaged(file: string, got: string, cause?: unknown) {
  const remedy = 'download or write the file again';
  return complaint({ code: 'data_invalid', field: file, expected: 'a Parquet file that is whole', got, remedy, cause });
}
