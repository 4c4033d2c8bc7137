/** Pass rates in a file beside the data: a line for each row that was measured. */
import { datasetOf } from '../dataset.js';
import { kindOf } from '../row.js';
import { openDataset } from './open-dataset.js';

/**
 * Reads `{"id": …, "passRate": …}` lines, for {@link Dataset.curriculum}: the ids are those of the rows of a data set, the rates shares of
 * samples that solved them, from 0 to 1. Other fields are left alone. All are held in memory.
 *
 * @param path of a file as `openDataset` reads it
 * @throws `not_found`; `row_invalid` for a line without id or rate, or with an id that was there before
 * @example
 * const passRates = await readPassRates('rates.jsonl');
 * const rows = await data.curriculum({ passRates, stages: [0.8, 0.4], seed: 1 });
 */
export async function readPassRates(
  path: string,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<ReadonlyMap<string, number>> {
  const rates = new Map<string, number>();
  const data = datasetOf((await openDataset(path)).parts.sources, { idField: 'id' }).withShape((row) => {
    const { passRate } = row.row;
    if (typeof passRate === 'number' && passRate >= 0 && passRate <= 1) return { value: { ...row, passRate } };
    const got = typeof passRate === 'number' ? String(passRate) : kindOf(passRate);
    return { fault: { field: 'passRate', expected: 'a number from 0 to 1', got, remedy: 'measure pass rates again' } };
  });
  for await (const { id, passRate } of data.read(signal === undefined ? {} : { signal })) rates.set(id, passRate);
  return rates;
}
