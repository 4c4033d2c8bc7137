/** Whether two results of queries are the same. */
import type { SqlRows, SqlValue } from './databases.js';

export interface SameRowsOptions {
  /** Whether rows must come in the same order; default false: the same rows, each as often. */
  readonly ordered?: boolean;
  /** Whether columns must have the same names, in the same order, whatever their case; default false. */
  readonly columnNames?: boolean;
  /** By how much numbers may differ, relative to the right one, or below 1 absolutely; default 1e-9. */
  readonly tolerance?: number;
}

export type Table = Extract<SqlRows, { readonly status: 'ok' }>;
type Row = readonly SqlValue[];

/** 1 and 1.0 are the same, 1 and '1' aren't; NULL is only NULL. The number of columns always counts. */
export function sameRows(given: Table, right: Table, options: SameRowsOptions = {}): boolean {
  const { ordered = false, columnNames = false, tolerance = 1e-9 } = options;
  if (given.columns.length !== right.columns.length || given.rows.length !== right.rows.length) return false;
  if (columnNames && given.columns.some((name, i) => name.toLowerCase() !== right.columns[i]?.toLowerCase()))
    return false;
  const same = (a: Row, b: Row): boolean => a.every((value, i) => sameValue(value, b[i] ?? null, tolerance));
  if (ordered) return given.rows.every((row, i) => same(row, right.rows[i]!));
  // Sorted by what must be equal, then by numbers; within a run of equal keys numbers may have swapped by less than the tolerance.
  const buckets = new Map<string, { readonly given: Row[]; readonly right: Row[] }>();
  for (const [side, rows] of [
    ['given', given.rows],
    ['right', right.rows],
  ] as const)
    for (const row of rows) {
      const key = keyOf(row);
      const bucket = buckets.get(key) ?? { given: [], right: [] };
      buckets.set(key, bucket);
      bucket[side].push(row);
    }
  return [...buckets.values()].every((bucket) => samePairs(bucket, same));
}

function samePairs(
  { given, right }: { readonly given: Row[]; readonly right: Row[] },
  same: (a: Row, b: Row) => boolean,
): boolean {
  if (given.length !== right.length) return false;
  const [a, b] = [given.sort(byNumbers), right.sort(byNumbers)];
  if (a.every((row, i) => same(row, b[i]!))) return true;
  const free = new Set(b);
  return a.every((row) => {
    for (const other of free)
      if (same(row, other)) {
        free.delete(other);
        return true;
      }
    return false;
  });
}

function isNumber(value: SqlValue): value is number | bigint {
  return typeof value === 'number' || typeof value === 'bigint';
}

function sameValue(a: SqlValue, b: SqlValue, tolerance: number): boolean {
  if (isNumber(a) && isNumber(b)) {
    // biome-ignore lint/suspicious/noDoubleEquals: bigint and number of the same value are equal by it alone
    if (a == b) return true;
    if (typeof a === 'bigint' && typeof b === 'bigint') return false;
    return Math.abs(Number(a) - Number(b)) <= tolerance * Math.max(1, Math.abs(Number(b)));
  }
  return cellKey(a) === cellKey(b);
}

/** All of a row that no tolerance is for. */
function keyOf(row: Row): string {
  return JSON.stringify(row.map((value) => (isNumber(value) ? '' : cellKey(value))));
}

function cellKey(value: SqlValue): string {
  if (value === null) return 'null';
  return typeof value === 'string' ? `text ${value}` : `${typeof value} ${String(value)}`;
}

function byNumbers(a: Row, b: Row): number {
  for (const [i, value] of a.entries()) {
    const other = b[i] ?? null;
    if (isNumber(value) && isNumber(other) && value < other) return -1;
    if (isNumber(value) && isNumber(other) && value > other) return 1;
  }
  return 0;
}
