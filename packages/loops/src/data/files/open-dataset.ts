/** Data sets of files, by the endings of their names. */
import { complaint } from '@loopwright/protocol';
import { type Dataset, type DatasetOptions, datasetOf } from '../dataset.js';
import type { RowSource } from '../source.js';
import { type FileSourceOptions, gzipFile, jsonlFile, requireFile } from './file-source.js';
import { parquetFile } from './parquet-source.js';

export interface OpenDatasetOptions extends DatasetOptions {
  /** The longest line of a JSONL file; longer ones are row errors. Default 64 MiB. */
  readonly maxLineBytes?: number;
  /** What a file is called in places and messages. Default: its path. */
  readonly nameOf?: (path: string) => string;
}

type Opener = (file: string, options: FileSourceOptions) => RowSource;

const openers: readonly (readonly [string, Opener])[] = [
  ['.jsonl', jsonlFile],
  ['.ndjson', jsonlFile],
  ['.jsonl.gz', gzipFile],
  ['.ndjson.gz', gzipFile],
  ['.parquet', parquetFile],
];

/** Endings of files that are read, the longest first. */
export const dataFileEndings: readonly string[] = openers.map(([ending]) => ending).sort((a, b) => b.length - a.length);

/**
 * Opens a file, or several as one. Nothing is read but that they are there: rows are read when they are asked for.
 *
 * @param files paths that end in `.jsonl`, `.ndjson` (either may be gzipped, `.gz`), or `.parquet`
 * @throws `invalid_argument` for another ending, `not_found`
 * @example
 * const data = await openDataset('train.jsonl');
 * for await (const { id, row, at } of data) console.log(id, at.line, Object.keys(row));
 */
export async function openDataset(
  files: string | readonly string[],
  { maxLineBytes, nameOf = (path) => path, ...options }: OpenDatasetOptions = {},
): Promise<Dataset> {
  const paths = typeof files === 'string' ? [files] : [...files];
  if (paths.length === 0) throw complaint({ field: 'files', expected: 'at least one path', got: 'none' });
  if (maxLineBytes !== undefined && !(Number.isSafeInteger(maxLineBytes) && maxLineBytes > 0)) {
    throw complaint({ field: 'maxLineBytes', expected: 'a whole number from 1', got: String(maxLineBytes) });
  }
  const sources = paths.map((path) =>
    openerOf(path)(nameOf(path), maxLineBytes === undefined ? { path } : { path, maxLineBytes }),
  );
  await Promise.all(paths.map(requireFile));
  return datasetOf(sources, options);
}

function openerOf(path: string): Opener {
  const opener = openers.find(([ending]) => path.toLowerCase().endsWith(ending))?.[1];
  if (opener !== undefined) return opener;
  throw complaint({
    field: 'files',
    expected: `a name that ends in ${dataFileEndings.join(', ')}`,
    got: /\.[^./\\]*$/.exec(path)?.[0] ?? 'none of them',
    remedy: 'write the data as JSONL: one JSON object a line',
  });
}
