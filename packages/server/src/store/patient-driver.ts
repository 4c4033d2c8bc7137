/**
 * SQLite under Kysely, where another program may hold the database: a backup, or somebody's shell with a transaction open. Who can't write waits,
 * and the process answers other requests meanwhile: SQLite's own waiting would stop the event loop. The same holds for the wait for the disk.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { complaint } from '@loopwright/protocol';
import { CompiledQuery, type DatabaseConnection, type Driver, SqliteDialect, type SqliteDialectConfig } from 'kysely';
import { sqliteCode } from './libsql-driver.js';
import type { WalSync } from './wal-sync.js';

/** Between attempts. */
const pauseMs = 20;

export interface PatientDialectConfig extends SqliteDialectConfig {
  /** How long a write waits for the other program before it is refused with `limit_exceeded`. */
  readonly patienceMs: number;
  /** What a write waits for before it counts; absent where it need not survive a power failure. */
  readonly wal?: WalSync | undefined;
}

export class PatientDialect extends SqliteDialect {
  readonly #config: PatientDialectConfig;

  constructor(config: PatientDialectConfig) {
    super(config);
    this.#config = config;
  }

  override createDriver(): Driver {
    return new PatientDriver(super.createDriver(), this.#config);
  }
}

class PatientDriver implements Driver {
  readonly #driver: Driver;
  readonly #config: PatientDialectConfig;
  /** There is one connection, and so at most one transaction. */
  #inTransaction = false;

  constructor(driver: Driver, config: PatientDialectConfig) {
    this.#driver = driver;
    this.#config = config;
  }

  init(): Promise<void> {
    return this.#driver.init();
  }

  async acquireConnection(): Promise<DatabaseConnection> {
    const connection = await this.#driver.acquireConnection();
    const { patienceMs, wal } = this.#config;
    return {
      streamQuery: (query, chunkSize) => connection.streamQuery(query, chunkSize),
      executeQuery: async <R>(query: CompiledQuery) => {
        const isWrite = !this.#inTransaction && query.query.kind !== 'SelectQueryNode'; // of its own: others count with their transaction
        if (isWrite) wal?.check();
        const result = await patiently(() => connection.executeQuery<R>(query), patienceMs);
        if (isWrite) await wal?.written();
        return result;
      },
    };
  }

  async beginTransaction(connection: DatabaseConnection): Promise<void> {
    this.#config.wal?.check();
    this.#inTransaction = true;
    try {
      // Taken at once: a transaction that first reads and then writes could not wait, since what it has read is old by then.
      await connection.executeQuery(CompiledQuery.raw('begin immediate'));
    } catch (error) {
      this.#inTransaction = false;
      throw error;
    }
  }

  async commitTransaction(connection: DatabaseConnection): Promise<void> {
    await this.#driver.commitTransaction(connection);
    this.#inTransaction = false;
    await this.#config.wal?.written();
  }

  async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    try {
      await this.#driver.rollbackTransaction(connection);
    } finally {
      this.#inTransaction = false;
    }
  }

  releaseConnection(connection: DatabaseConnection): Promise<void> {
    return this.#driver.releaseConnection(connection);
  }

  async destroy(): Promise<void> {
    await this.#config.wal?.close();
    await this.#driver.destroy();
  }
}

async function patiently<T>(work: () => Promise<T>, patienceMs: number): Promise<T> {
  const end = performance.now() + patienceMs;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (performance.now() >= end) throw busy(patienceMs, error);
      await sleep(pauseMs);
    }
  }
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
