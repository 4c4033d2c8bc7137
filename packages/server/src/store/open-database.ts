/** Opens the database of a server: the only file that knows which database it is. */
import { complaint } from '@loopwright/protocol';
import { Kysely, type Transaction } from 'kysely';
import type { Durability } from '../durability.js';
import { SqliteFile } from './libsql-driver.js';
import { migrations, schemaVersion } from './migrations.js';
import { PatientDialect } from './patient-driver.js';
import type { Tables } from './tables.js';
import { type SyncFile, WalSync } from './wal-sync.js';

/** Queries of the server; one connection, transactions one after another. A write has returned when it is on the disk. */
export class Database extends Kysely<Tables> {
  readonly #wal: WalSync | undefined;

  constructor(dialect: PatientDialect, wal: WalSync | undefined) {
    super({ dialect });
    this.#wal = wal;
  }

  /** A transaction that returns before it is on the disk: nobody may be told of it until {@link durable} has resolved. */
  async commitEarly<T>(work: (trx: Transaction<Tables>) => Promise<T>): Promise<T> {
    const wal = this.#wal;
    if (wal === undefined) return this.transaction().execute(work);
    return this.connection().execute((own) => wal.late(() => own.transaction().execute(work)));
  }

  /**
   * Resolves when all that was committed before this call is on the disk; at once where nothing waits for it.
   * @throws `disk_full`, `internal`: the disk did not confirm it
   */
  async durable(): Promise<void> {
    await this.#wal?.durable();
  }
}

export interface DatabaseOptions {
  /** Default `power-loss`: every write is on the disk before it returns. */
  readonly durability?: Durability | undefined;
  /** How long queries wait while another program has the database locked, before they fail with `limit_exceeded`. Default a minute. */
  readonly busyMs?: number;
  /** In tests, a disk that fails. */
  readonly sync?: SyncFile | undefined;
}

/**
 * Opens (and creates or migrates) the database at `path`: SQLite in WAL mode.
 *
 * The caller owns it and ends it with `destroy()`.
 * @throws `internal` naming both versions when a newer release wrote the file; `disk_full`
 */
export function openDatabase(
  path: string,
  { durability = 'power-loss', busyMs = 60_000, sync }: DatabaseOptions = {},
): Database {
  const file = new SqliteFile(path);
  try {
    file.pragma('busy_timeout = 5000');
    file.pragma('journal_mode = WAL');
    file.pragma('foreign_keys = ON');
    migrate(file, path);
    file.pragma('synchronous = NORMAL'); // from here on it is a WalSync that waits for the disk
    file.pragma('busy_timeout = 0'); // from here on the driver waits, without standing still
  } catch (error) {
    file.close();
    throw error;
  }
  const wal =
    durability === 'power-loss' && path !== ':memory:' ? new WalSync({ path: `${path}-wal`, sync }) : undefined;
  return new Database(new PatientDialect({ database: file, patienceMs: busyMs, wal }), wal);
}

function migrate(file: SqliteFile, path: string): void {
  const found = Number(file.pragma('user_version'));
  if (found > schemaVersion) {
    throw complaint({
      code: 'internal',
      field: path,
      expected: `schema ${schemaVersion} or older`,
      got: `schema ${found}, which a newer release wrote`,
      remedy: 'update, or start with another data directory',
    });
  }
  for (let version = found; version < schemaVersion; version++) {
    file.exec(`BEGIN IMMEDIATE; ${migrations[version]!} PRAGMA user_version = ${version + 1}; COMMIT;`);
  }
}
