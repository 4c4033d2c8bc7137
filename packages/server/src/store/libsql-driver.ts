/** libsql under Kysely: prepared statements are kept, and SQLite's failures become ours. */
import { diskFull, LoopwrightError } from '@loopwright/protocol';
import type { SqliteDatabase, SqliteStatement } from 'kysely';
import LibsqlDatabase from 'libsql';

/** Every query text is one of ours, so the set is small; the limit is against a query built from data by mistake. */
const maxStatements = 500;

/** The part of a libsql statement that we use (the package's own types are `any`). */
interface Statement {
  readonly reader: boolean;
  all(parameters: readonly unknown[]): unknown[];
  run(parameters: readonly unknown[]): { changes: number | bigint; lastInsertRowid: number | bigint };
  iterate(parameters: readonly unknown[]): IterableIterator<unknown>;
}

/** An open SQLite file. All calls block; a durable transaction takes about half a millisecond. */
export class SqliteFile implements SqliteDatabase {
  readonly #database: InstanceType<typeof LibsqlDatabase>;
  readonly #statements = new Map<string, SqliteStatement>();
  #open = true;

  /** @throws `disk_full` or `internal`, with the path, when the file can't be opened */
  constructor(path: string) {
    try {
      this.#database = new LibsqlDatabase(path, {});
    } catch (error) {
      throw translate(error, `database ${path}`);
    }
  }

  prepare(sql: string): SqliteStatement {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    const statement = guard(() => this.#database.prepare(sql) as Statement); // true: the shape of libsql's Statement class
    const wrapped: SqliteStatement = {
      reader: statement.reader,
      all: (parameters) => guard(() => statement.all(parameters)),
      run: (parameters) => {
        // SQLite undoes a transaction by itself when the disk is full; a complaint about that would hide the reason.
        if (isRollback(sql) && !this.#database.inTransaction) return { changes: 0, lastInsertRowid: 0 };
        return guard(() => statement.run(parameters));
      },
      iterate: (parameters) => guard(() => statement.iterate(parameters)),
    };
    if (this.#statements.size < maxStatements) this.#statements.set(sql, wrapped);
    return wrapped;
  }

  /** Runs statements that return nothing, several separated by `;`. */
  exec(sql: string): void {
    guard(() => this.#database.exec(sql));
  }

  /** One value of a pragma. */
  pragma(name: string): unknown {
    const row = guard(() => (this.#database.prepare(`PRAGMA ${name}`) as Statement).all([]))[0];
    return typeof row === 'object' && row !== null ? Object.values(row)[0] : undefined;
  }

  /**
   * Closing twice is harmless. The file is whole afterwards: SQLite itself closes, and moves the write-ahead log into it, only once the
   * statements have been collected as garbage, which may be long after the directory was given to somebody else.
   */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.#statements.clear();
    try {
      this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)'); // not prepared: a statement of its own would keep locks
    } catch {
      // a full disk, for one: the log stays, and the next opening reads it
    }
    this.#database.close();
  }
}

function isRollback(sql: string): boolean {
  return sql.toLowerCase() === 'rollback';
}

function guard<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw translate(error, 'database');
  }
}

/** The `code` that SQLite gave an error, such as `SQLITE_BUSY`; undefined for other errors. */
export function sqliteCode(error: unknown): string | undefined {
  const cause = LoopwrightError.isInstance(error) ? error.cause : error;
  if (typeof cause !== 'object' || cause === null || !('code' in cause)) return undefined;
  return typeof cause.code === 'string' && cause.code.startsWith('SQLITE_') ? cause.code : undefined;
}

/** What SQLite says when a write of the database, its log or the index of that finds no room. */
const fullCodes = ['SQLITE_FULL', 'SQLITE_IOERR_WRITE', 'SQLITE_IOERR_SHMSIZE'];

function translate(error: unknown, what: string): LoopwrightError {
  if (LoopwrightError.isInstance(error)) return error;
  const code = sqliteCode(error);
  if (code !== undefined && fullCodes.some((full) => code.startsWith(full))) {
    return diskFull({ field: 'dataDir', got: code, cause: error });
  }
  return new LoopwrightError({
    code: 'internal',
    message: `${what}: ${code ?? 'failed'}: ${text(error)}`,
    cause: error,
  });
}

function text(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
