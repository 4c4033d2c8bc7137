/** Rows of one data set that are in another too. */
import type { Dataset } from './dataset.js';
import { FingerprintTable } from './fingerprint-table.js';
import type { DataRow, RowPlace } from './row.js';
import { canonicalJson, fingerprint } from './row-hash.js';
import { contentKey } from './split.js';

export interface Leak {
  /** `normalised`: they differ in case, white space or Unicode form only. */
  readonly kind: 'exact' | 'normalised';
  readonly at: RowPlace;
  /** The first row of the other set that is the same. */
  readonly same: RowPlace;
}

export interface LeakReport {
  /** Rows of the second set that are in the first. */
  readonly exact: number;
  readonly normalised: number;
  /** The first hundred. */
  readonly leaks: readonly Leak[];
  /** Rows that were compared. */
  readonly rows: { readonly first: number; readonly second: number };
}

const maxLeaks = 100;

/**
 * Looks for rows of `second` (a test set) in `first` (what is trained on): whole rows but their id field. About 50 bytes a row of `first`.
 *
 * @throws what reading throws
 * @example const { exact, normalised } = await findLeaks(train, test);
 */
export async function findLeaks(first: Dataset, second: Dataset): Promise<LeakReport> {
  const [exact, normalised] = [new FingerprintTable(), new FingerprintTable()];
  // Lines of all files, one after another, so that one number is a place.
  const starts: number[] = [];
  let end = 0;
  let firstRows = 0;
  for await (const { row, source } of first.find()) {
    while (starts.length <= source) starts.push(end);
    const line = starts[source]! + row.at.line;
    end = line;
    firstRows += 1;
    const keys = keysOf(row, first.parts.idField);
    exact.add(keys.exact, line);
    normalised.add(keys.normalised, line);
  }
  const placeOf = (line: number): RowPlace => {
    const source = starts.findLastIndex((start) => start < line);
    return { file: first.files[source] ?? '', line: line - (starts[source] ?? 0) };
  };
  const counts = { exact: 0, normalised: 0 };
  const leaks: Leak[] = [];
  let secondRows = 0;
  for await (const row of second) {
    secondRows += 1;
    const keys = keysOf(row, second.parts.idField);
    const same = exact.get(keys.exact);
    const kind = same === undefined ? 'normalised' : 'exact';
    const line = same ?? normalised.get(keys.normalised);
    if (line === undefined) continue;
    counts[kind] += 1;
    if (leaks.length < maxLeaks) leaks.push({ kind, at: row.at, same: placeOf(line) });
  }
  return { ...counts, leaks, rows: { first: firstRows, second: secondRows } };
}

function keysOf(row: DataRow, idField: string | undefined) {
  const { [idField ?? '']: _, ...content } = row.row;
  return {
    exact: fingerprint(canonicalJson(idField === undefined ? row.row : content)),
    normalised: fingerprint(contentKey(row, idField)),
  };
}
