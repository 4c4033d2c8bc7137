/** Answers that are queries, judged by what they find in fixture databases. */
import { complaint } from '@loopwright/protocol';
import type { Problem } from '../../environments/environment.js';
import { codeBlock } from '../answers/code-block.js';
import { type Component, type ComponentOptions, labelled } from '../component.js';
import type { SqlDatabases, SqlValue } from './databases.js';
import { type SameRowsOptions, sameRows, type Table } from './same-rows.js';

export interface SqlResultOptions<P extends Problem> extends ComponentOptions, SameRowsOptions {
  /** Stay the caller's: close them after the run. */
  readonly databases: SqlDatabases;
  /** Names of those that the query is run on. It must be right on each: on one alone, a constant may be right as well. */
  readonly database: string | readonly string[] | ((problem: P) => string | readonly string[]);
  /** A query that finds what is right; default the problem's `answer`. Rows where they are known, for one database. */
  readonly expected?: (
    problem: P,
  ) => string | { readonly columns?: readonly string[]; readonly rows: readonly (readonly SqlValue[])[] };
}

/**
 * 1 when the query of the answer (the last closed block of SQL, else the whole answer) finds the right rows, else 0.
 *
 * One statement that only reads. One that fails, takes too long or finds too much scores 0, with the reason in the trace: that is the
 * model's doing. A reference query that fails is a `grader_error`.
 */
export function sqlResult<P extends Problem = Problem>(options: SqlResultOptions<P>): Component<P> {
  const { databases, database, expected } = options;
  const tables = async (name: string, problem: P, signal: AbortSignal): Promise<Table> => {
    const right = expected === undefined ? problem.answer : expected(problem);
    if (typeof right !== 'string') {
      const { rows, columns = (rows[0] ?? []).map(() => '') } = right;
      return { status: 'ok', rows, columns };
    }
    const found = await databases.query(name, right, signal);
    if (found.status === 'ok') return found;
    throw complaint({
      field: 'expected',
      expected: 'a query that runs',
      got: found.reason,
      remedy: 'correct the reference',
    });
  };
  return {
    ...labelled('sql', options),
    timeoutMs: Number.POSITIVE_INFINITY, // queries have their own limit, the wait for a turn has none
    score: async ({ problem, text, stopReason }, { signal }) => {
      const sql = codeBlock(text, 'sql') ?? (/^ {0,3}(?:`{3,}|~{3,})/m.test(text) ? '' : text.trim());
      if (sql.trim() === '') {
        const cut = stopReason === 'length' ? '; the answer was truncated by the token limit' : '';
        return { status: 'unparsed', reason: `no query${cut}` };
      }
      const named = typeof database === 'function' ? database(problem) : database;
      const names = typeof named === 'string' ? [named] : named;
      if (names.length === 0) throw complaint({ field: 'database', expected: 'at least one name', got: 'none' });
      for (const name of names) {
        const right = await tables(name, problem, signal);
        const given = await databases.query(name, sql, signal);
        if (given.status === 'failed') return { status: 'ok', score: 0, trace: `${name}: ${given.reason}` };
        if (!sameRows(given, right, options))
          return {
            status: 'ok',
            score: 0,
            trace: `${name}: ${given.rows.length} rows, not the ${right.rows.length} that are right`,
          };
      }
      return { status: 'ok', score: 1, trace: 'the right rows' };
    },
  };
}
