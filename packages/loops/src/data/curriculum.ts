/** Curricula: rows from easy to hard, by numbers of their own, by measured pass rates, or by the files they lie in. */
import { complaint } from '@loopwright/protocol';
import { readNamed } from './columns.js';
import type { Dataset, FoundRow } from './dataset.js';
import type { OrderedRows } from './ordered-rows.js';
import { checkOptions, orderedRows, permutation, readOptions, type ShuffleOptions } from './ordering.js';
import { type DataRow, kindOf, type RowFault } from './row.js';
import { indexRows } from './row-index.js';

/** What says how hard a row is. Rows that are equally hard, or of one stage, are shuffled by the seed. */
export type CurriculumOrder =
  /** A field with a number, or numbers by id: small ones are easy. */
  | { readonly by: string | ReadonlyMap<string, number> }
  /**
   * Shares of samples that solved a row, from 0 to 1 by id: large ones are easy. With `stages`, only in which of them a row is counts:
   * `[0.8, 0.4]` makes three, of rates from 0.8, from 0.4, and below.
   */
  | { readonly passRates: ReadonlyMap<string, number>; readonly stages?: readonly number[] }
  /** Each file is a stage, the first the easiest. */
  | { readonly stages: 'files' };

export type CurriculumOptions = ShuffleOptions &
  CurriculumOrder & {
    /** Default `easy`. */
    readonly first?: 'easy' | 'hard';
  };

interface Difficulty {
  /** Of a row, small for easy ones. Undefined where it can't be told. */
  readonly of: (found: Pick<FoundRow<DataRow>, 'row' | 'source'>) => unknown;
  readonly fault: Pick<RowFault, 'field' | 'expected' | 'remedy'>;
}

export async function curriculumRows<R extends DataRow>(
  data: Dataset<R>,
  options: CurriculumOptions,
): Promise<OrderedRows<R>> {
  checkOptions(options);
  const { first = 'easy' } = options;
  if (first !== 'easy' && first !== 'hard') {
    throw complaint({ field: 'first', expected: "'easy' or 'hard'", got: String(first) });
  }
  const difficulty = difficultyOf(data, options);
  const { shape } = data.parts;
  const graded = data.withShape((row) => {
    const shaped = shape(row);
    if (shaped === 'elsewhere' || 'fault' in shaped) return shaped;
    // Where the file is what counts, any number will do here.
    const value = difficulty.of({ row, source: 0 });
    if (typeof value === 'number' && Number.isFinite(value)) return shaped;
    return { fault: { ...difficulty.fault, got: kindOf(value) } };
  });
  const difficulties: number[] = [];
  const index = await indexRows(graded, readOptions(options), (found) => {
    difficulties.push(Number(difficulty.of(found)));
  });
  const order = permutation(index.size, options);
  const ranks = new Uint32Array(order.length);
  order.forEach((row, rank) => {
    ranks[row] = rank;
  });
  const sign = first === 'easy' ? 1 : -1;
  order.sort((a, b) => sign * (difficulties[a]! - difficulties[b]!) || ranks[a]! - ranks[b]!); // both are indexed
  return orderedRows(graded, { index, order }, options);
}

function difficultyOf({ parts }: Dataset<DataRow>, options: CurriculumOrder): Difficulty {
  if ('by' in options) {
    const { by } = options;
    const { fields = {} } = parts;
    return {
      of: ({ row }) => (typeof by === 'string' ? readNamed(row.row, by, fields) : by.get(row.id)),
      fault: { field: typeof by === 'string' ? by : 'difficulty', expected: 'a number that says how hard the row is' },
    };
  }
  if ('passRates' in options) {
    const { passRates, stages } = options;
    checkStages(stages);
    const remedy = "measure these rows too, or leave them out and have them counted: onRowError: 'skip'";
    return {
      of: ({ row }) => {
        const rate = passRates.get(row.id);
        if (rate === undefined) return undefined;
        return stages === undefined ? -rate : stages.filter((stage) => rate < stage).length;
      },
      fault: { field: 'passRate', expected: 'a pass rate for the id of the row', remedy },
    };
  }
  if (options.stages === 'files') return { of: ({ source }) => source, fault: { field: 'file', expected: 'a file' } };
  throw complaint({
    field: 'curriculum',
    expected: "by, passRates, or stages: 'files'",
    got: 'none of them',
  });
}

function checkStages(stages: readonly number[] | undefined): void {
  if (stages === undefined || (stages.length > 0 && stages.every((stage) => stage > 0 && stage <= 1))) return;
  const got = stages.length === 0 ? 'none' : stages.join(', ');
  throw complaint({ field: 'stages', expected: 'the pass rates at which stages begin, above 0 and up to 1', got });
}
