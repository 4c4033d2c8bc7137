/** Rows of one data set that are in another too. */
import type { Dataset, DatasetOptions } from './dataset.js';
import { FingerprintTable } from './fingerprint-table.js';
import { promptKey } from './prompt-key.js';
import type { DataRow, RowPlace } from './row.js';
import { canonicalJson, fingerprint } from './row-hash.js';
import { contentKey } from './split.js';

export interface Leak {
  /** `normalised`: they differ in case, white space or Unicode form only. `prompt`: only their prompts are the same, but for these. */
  readonly kind: 'exact' | 'normalised' | 'prompt';
  readonly at: RowPlace;
  /** The first row of the other set that is the same. */
  readonly same: RowPlace;
}

export interface LeakReport {
  /** Rows of the second set that are in the first. */
  readonly exact: number;
  readonly normalised: number;
  /** Further rows of which the prompt alone is in the first: with another answer, or in another format. */
  readonly prompt: number;
  /** The first hundred. */
  readonly leaks: readonly Leak[];
  /** Rows that were compared. */
  readonly rows: { readonly first: number; readonly second: number };
}

const maxLeaks = 100;

/**
 * Looks for rows of `second` (a test set) in `first` (what is trained on): whole rows but their id field, and
 * their prompts. About 75 bytes a row of `first`.
 *
 * @throws what reading throws
 * @example const { exact, normalised, prompt } = await findLeaks(train, test);
 */
export async function findLeaks(first: Dataset, second: Dataset): Promise<LeakReport> {
  const [exact, normalised, prompts] = [new FingerprintTable(), new FingerprintTable(), new FingerprintTable()];
  // Lines of all files, one after another, so that one number is a place.
  const starts: number[] = [];
  let end = 0;
  let firstRows = 0;
  for await (const { row, source } of first.find()) {
    while (starts.length <= source) starts.push(end);
    const line = starts[source]! + row.at.line;
    end = line;
    firstRows += 1;
    const keys = keysOf(row, first.parts);
    exact.add(keys.exact, line);
    normalised.add(keys.normalised, line);
    if (keys.prompt !== undefined) prompts.add(keys.prompt, line);
  }
  const placeOf = (line: number): RowPlace => {
    const source = starts.findLastIndex((start) => start < line);
    return { file: first.files[source] ?? '', line: line - (starts[source] ?? 0) };
  };
  const counts = { exact: 0, normalised: 0, prompt: 0 };
  const leaks: Leak[] = [];
  let secondRows = 0;
  for await (const row of second) {
    secondRows += 1;
    const keys = keysOf(row, second.parts);
    const found = [
      ['exact', exact.get(keys.exact)],
      ['normalised', normalised.get(keys.normalised)],
      ['prompt', keys.prompt && prompts.get(keys.prompt)],
    ] as const;
    const [kind, line] = found.find(([, line]) => line !== undefined) ?? [];
    if (kind === undefined || line === undefined) continue;
    counts[kind] += 1;
    if (leaks.length < maxLeaks) leaks.push({ kind, at: row.at, same: placeOf(line) });
  }
  return { ...counts, leaks, rows: { first: firstRows, second: secondRows } };
}

function keysOf(row: DataRow, { idField, fields = {} }: Pick<DatasetOptions, 'idField' | 'fields'>) {
  const { [idField ?? '']: _, ...content } = row.row;
  const prompt = promptKey(row, fields);
  return {
    exact: fingerprint(canonicalJson(idField === undefined ? row.row : content)),
    normalised: fingerprint(contentKey(row, idField)),
    prompt: prompt === undefined ? undefined : fingerprint(prompt),
  };
}
