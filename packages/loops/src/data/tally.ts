/** What became of every line of a reading: rows, errors, blank lines, rows of another split. The counts add up. */
import { complaint } from '@loopwright/protocol';
import { counted } from '../counted.js';
import { type RowError, rowErrorText, rowsInvalid } from './row.js';

/**
 * What happens to rows that can't be used. `stop`: the first ends the reading. `{ collect: n }`: reading goes on, and ends with an error that lists
 * them, at the n-th or at the end. `skip`: they are left out and counted, and {@link ReadingReport} says so.
 */
export type OnRowError = 'stop' | 'skip' | { readonly collect: number };

export interface ReadingReport {
  /** Lines of JSONL files and rows of Parquet files that were read: `rows + errorCount + blank + elsewhere`. */
  readonly lines: number;
  /** Given to the caller. */
  readonly rows: number;
  readonly errorCount: number;
  /** The first of them: 1,000 at most, so that a file of nothing but errors fits in memory. */
  readonly errors: readonly RowError[];
  readonly blank: number;
  /** Rows that belong to another split. */
  readonly elsewhere: number;
  /** Whether the reading came to the end of the data. */
  readonly complete: boolean;
}

export type OnReport = (report: ReadingReport) => void;

const maxKeptErrors = 1000;

export class Tally {
  readonly #policy: OnRowError;
  readonly #counts = { lines: 0, rows: 0, errorCount: 0, blank: 0, elsewhere: 0 };
  readonly #errors: RowError[] = [];
  #complete = false;

  /** @throws `invalid_argument` for a policy that is none */
  constructor(policy: OnRowError) {
    this.#policy = checkPolicy(policy);
  }

  count(kind: 'rows' | 'blank' | 'elsewhere'): void {
    this.#counts.lines += 1;
    this.#counts[kind] += 1;
  }

  /** @throws `row_invalid` where the policy says so */
  error(error: RowError): void {
    this.#counts.lines += 1;
    this.#counts.errorCount += 1;
    if (this.#errors.length < maxKeptErrors) this.#errors.push(error);
    const limit =
      this.#policy === 'stop' ? 1 : this.#policy === 'skip' ? Number.POSITIVE_INFINITY : this.#policy.collect;
    if (this.#counts.errorCount >= limit) throw rowsInvalid(this.#errors, { all: false });
  }

  /** @throws `row_invalid` with all errors that were collected */
  finish(): void {
    this.#complete = true;
    if (this.#policy !== 'skip' && this.#errors.length > 0) throw rowsInvalid(this.#errors, { all: true });
  }

  report(): ReadingReport {
    return { ...this.#counts, errors: [...this.#errors], complete: this.#complete };
  }
}

/** A report in one sentence, with the first error's place: what is shown of skipped rows unless the caller shows them. */
export function reportText({ lines, rows, errorCount, errors, blank, elsewhere, complete }: ReadingReport): string {
  const parts = [counted(rows, 'row'), `${errorCount} skipped`, `${blank} blank`];
  if (elsewhere > 0) parts.push(`${elsewhere} of other splits`);
  const first = errors[0] === undefined ? '' : `; first: ${rowErrorText(errors[0])}`;
  return `${lines} lines${complete ? '' : ' so far'}: ${parts.join(', ')}${first}`;
}

function checkPolicy(policy: OnRowError): OnRowError {
  if (policy === 'stop' || policy === 'skip') return policy;
  const limit: unknown = typeof policy === 'object' && policy !== null ? policy.collect : undefined;
  if (Number.isSafeInteger(limit) && Number(limit) >= 1 && Number(limit) <= maxKeptErrors) return policy;
  throw complaint({
    field: 'onRowError',
    expected: `'stop', 'skip' or { collect: n } with n from 1 to ${maxKeptErrors}`,
    got: typeof policy === 'object' ? `collect: ${String(limit)}` : String(policy),
  });
}
