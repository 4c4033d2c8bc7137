/** Opens the database of a server: the only file that knows which database it is. */
import { complaint } from '@loopwright/protocol';
import { Kysely } from 'kysely';
import type { Durability } from '../durability.js';
import { SqliteFile } from './libsql-driver.js';
import { migrations, schemaVersion } from './migrations.js';
import { PatientDialect } from './patient-driver.js';
import type { Tables } from './tables.js';

/** Queries of the server; one connection, transactions one after another. */
export type Database = Kysely<Tables>;

/**
 * Opens (and creates or migrates) the database at `path`: SQLite in WAL mode; with `power-loss` (the default) every commit is on
 * the disk before it returns. Queries wait up to `busyMs` (a minute) while another program has it locked, then fail with `limit_exceeded`.
 *
 * The caller owns it and ends it with `destroy()`.
 * @throws `internal` naming both versions when a newer release wrote the file; `disk_full`
 */
export function openDatabase(path: string, durability: Durability = 'power-loss', busyMs = 60_000): Database {
  const file = new SqliteFile(path);
  try {
    file.pragma('busy_timeout = 5000');
    file.pragma('journal_mode = WAL');
    file.pragma(durability === 'power-loss' ? 'synchronous = FULL' : 'synchronous = NORMAL');
    file.pragma('foreign_keys = ON');
    migrate(file, path);
    file.pragma('busy_timeout = 0'); // from here on the driver waits, without standing still
  } catch (error) {
    file.close();
    throw error;
  }
  return new Kysely<Tables>({ dialect: new PatientDialect({ database: file, patienceMs: busyMs }) });
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
