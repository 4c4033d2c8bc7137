/**
 * Queries that are built and compiled once, their values filled in at each run: building and compiling one anew takes Kysely about as long as
 * SQLite takes to run it, and an operation of one token is a dozen of them.
 */
import { LoopwrightError } from '@loopwright/protocol';
import type { Compilable, CompiledQuery, Insertable, Kysely, QueryResult } from 'kysely';
import type { Tables } from './tables.js';

/** Stands in a compiled query for a value. */
class Slot {
  readonly name: PropertyKey;

  constructor(name: PropertyKey) {
    this.name = name;
  }
}

/** Runs a query with values, in a transaction or outside of one. */
export type Prepared<V, R> = (database: Kysely<Tables>, values: V) => Promise<QueryResult<R>>;

/**
 * A query with slots for the values `V`, which may stand only where a value may: not where the shape of the query depends on them.
 *
 * @example
 * const byName = prepared<{ name: string }>()((database, { name }) => database.selectFrom('sessions').selectAll().where('name', '=', name));
 * const { rows } = await byName(database, { name: 'mine' });
 */
export function prepared<V extends object>(): <R>(
  build: (database: Kysely<Tables>, slots: V) => Compilable<R>,
) => Prepared<V, R> {
  // true: a builder takes a slot for a value of its column, and gives it back in `parameters`
  const slots = new Proxy({}, { get: (_, name) => new Slot(name) }) as V;
  return <R>(build: (database: Kysely<Tables>, slots: V) => Compilable<R>) => {
    let compiled: CompiledQuery<R> | undefined;
    return (database, values) => {
      compiled ??= build(database, slots).compile();
      const parameters = compiled.parameters.map((parameter) =>
        parameter instanceof Slot ? values[parameter.name as keyof V] : parameter,
      );
      return database.executeQuery<R>({ ...compiled, parameters });
    };
  };
}

/** Adds a row whose columns are always the same: those of the first one. */
export function preparedInsert<T extends keyof Tables & string>(
  table: T,
): (database: Kysely<Tables>, row: Insertable<Tables[T]>) => Promise<void> {
  let columns: readonly string[] | undefined;
  const insert = prepared<Insertable<Tables[T]>>()((database, slots) => {
    const entries = (columns ?? []).map((column) => [column, slots[column as keyof typeof slots]]);
    return database.insertInto(table).values(Object.fromEntries(entries)); // true: a slot for each column of the row
  });
  return async (database, row) => {
    const own = Object.keys(row);
    columns ??= own;
    if (own.length !== columns.length)
      throw new LoopwrightError({ code: 'internal', message: `${table}: a row of other columns` });
    await insert(database, row);
  };
}
