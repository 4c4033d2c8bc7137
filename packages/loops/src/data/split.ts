/** Parts of a data set by hashes: a row's part never changes when others come or go, and what belongs together stays together. */
import { complaint } from '@loopwright/protocol';
import { type FieldColumns, readNamed } from './columns.js';
import type { Dataset, DatasetOptions } from './dataset.js';
import { promptKey } from './prompt-key.js';
import { type Checked, type DataRow, kindOf } from './row.js';
import { canonicalJson, fingerprint, normalizeTexts } from './row-hash.js';

export interface SplitOptions<P extends string> {
  /** Shares by name, which sum to 1, such as `{ train: 0.9, test: 0.1 }`. */
  readonly parts: Readonly<Record<P, number>>;
  /**
   * A field that rows which belong together share, such as a document or a user. By default that is the prompt: rows of one task, with
   * whatever answers, lie in one part. Rows without a prompt are told apart by their content but the id field. Case, white space and
   * Unicode form don't count.
   */
  readonly by?: string;
  /** Default 0. Another seed is another split. */
  readonly seed?: number;
}

export function splitRows<R extends DataRow, P extends string>(
  data: Dataset<R>,
  { parts, by, seed = 0 }: SplitOptions<P>,
): Readonly<Record<P, Dataset<R>>> {
  const ends = checkParts(parts);
  if (!Number.isSafeInteger(seed)) throw complaint({ field: 'seed', expected: 'an integer', got: String(seed) });
  const { shape, fields = {} } = data.parts;
  const dataOf = (name: string): Dataset<R> =>
    data.withShape((row) => {
      const shaped = shape(row);
      if (shaped === 'elsewhere' || 'fault' in shaped) return shaped;
      const key = by === undefined ? { value: taskKey(row, data.parts) } : groupKey(row, { by, fields });
      if ('fault' in key) return key;
      const { high, low } = fingerprint(`${seed}:${key.value}`);
      const place = (high * 2 ** 21 + (low >>> 11)) / 2 ** 53;
      const part = ends.find(({ end }) => place < end) ?? ends.at(-1);
      return part?.name === name ? shaped : 'elsewhere';
    });
  return Object.fromEntries(ends.map(({ name }) => [name, dataOf(name)])) as Record<P, Dataset<R>>; // true: a set for each name
}

/** What rows with the same content have in common, but for case, white space and Unicode form. */
export function contentKey({ row }: DataRow, idField: string | undefined): string {
  const { [idField ?? '']: _, ...content } = row;
  return canonicalJson(normalizeTexts(idField === undefined ? row : content));
}

function taskKey(row: DataRow, { idField, fields = {} }: Pick<DatasetOptions, 'idField' | 'fields'>): string {
  const prompt = promptKey(row, fields);
  return prompt === undefined ? contentKey(row, idField) : `prompt:${prompt}`;
}

function groupKey(
  { row }: DataRow,
  { by, fields }: { readonly by: string; readonly fields: FieldColumns },
): Checked<string> {
  const value = readNamed(row, by, fields);
  if (value !== undefined && value !== null && value !== '') return { value: canonicalJson(normalizeTexts(value)) };
  return { fault: { field: by, expected: 'a value that says which rows belong together', got: kindOf(value) } };
}

function checkParts(parts: Readonly<Record<string, number>>): { readonly name: string; readonly end: number }[] {
  const shares = Object.entries(parts);
  const sum = shares.reduce((total, [, share]) => total + share, 0);
  const isFine = shares.every(([, share]) => share > 0) && Math.abs(sum - 1) < 1e-9;
  if (!isFine) {
    const got = shares.map(([, share]) => String(share)).join(', ') || 'none';
    throw complaint({ field: 'parts', expected: 'shares above 0 that sum to 1', got });
  }
  let end = 0;
  return shares.map(([name, share]) => {
    end += share;
    return { name, end };
  });
}
