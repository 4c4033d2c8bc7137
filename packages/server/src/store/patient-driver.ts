/**
 * SQLite under Kysely, where another program may hold the database: a backup, or somebody's shell with a transaction open. Who can't write waits,
 * and the process answers other requests meanwhile: SQLite's own waiting would stop the event loop.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { complaint } from '@loopwright/protocol';
import { CompiledQuery, type DatabaseConnection, type Driver, SqliteDialect, type SqliteDialectConfig } from 'kysely';
import { sqliteCode } from './libsql-driver.js';

/** Between attempts. */
const pauseMs = 20;

export interface PatientDialectConfig extends SqliteDialectConfig {
  /** How long a write waits for the other program before it is refused with `limit_exceeded`. */
  readonly patienceMs: number;
}

export class PatientDialect extends SqliteDialect {
  readonly #patienceMs: number;

  constructor({ patienceMs, ...config }: PatientDialectConfig) {
    super(config);
    this.#patienceMs = patienceMs;
  }

  override createDriver(): Driver {
    return patient(super.createDriver(), this.#patienceMs);
  }
}

function patient(driver: Driver, patienceMs: number): Driver {
  return {
    init: () => driver.init(),
    acquireConnection: async () => patientConnection(await driver.acquireConnection(), patienceMs),
    // Taken at once: a transaction that first reads and then writes could not wait, since what it has read is old by then.
    beginTransaction: async (connection) => {
      await connection.executeQuery(CompiledQuery.raw('begin immediate'));
    },
    commitTransaction: (connection) => driver.commitTransaction(connection),
    rollbackTransaction: (connection) => driver.rollbackTransaction(connection),
    releaseConnection: (connection) => driver.releaseConnection(connection),
    destroy: () => driver.destroy(),
  };
}

function patientConnection(connection: DatabaseConnection, patienceMs: number): DatabaseConnection {
  return {
    streamQuery: (query, chunkSize) => connection.streamQuery(query, chunkSize),
    executeQuery: async (query) => {
      const end = performance.now() + patienceMs;
      for (;;) {
        try {
          return await connection.executeQuery(query);
        } catch (error) {
          if (!isBusy(error)) throw error;
          if (performance.now() >= end) throw busy(patienceMs, error);
          await sleep(pauseMs);
        }
      }
    },
  };
}

function isBusy(error: unknown): boolean {
  return sqliteCode(error)?.startsWith('SQLITE_BUSY') === true;
}

function busy(patienceMs: number, cause: unknown) {
  return complaint({
    code: 'limit_exceeded',
    field: 'dataDir',
    expected: 'a database that no other program writes to',
    got: `one that was locked for ${Math.round(patienceMs / 1000)} s`,
    remedy: 'end the program that has the database open (a backup or a shell), then call again',
    cause,
  });
}
