/** Fixture databases: SQL scripts that queries of others are run against, read-only, in a worker that can be ended. */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import { workerSource } from './worker-source.js';

/** What SQLite gives: whole numbers beyond 2⁵³ are bigint. */
export type SqlValue = number | bigint | string | Uint8Array | null;

export type SqlRows =
  | { readonly status: 'ok'; readonly columns: readonly string[]; readonly rows: readonly (readonly SqlValue[])[] }
  /** The query's fault; the reason may quote it. */
  | { readonly status: 'failed'; readonly reason: string };

export interface SqlDatabasesOptions {
  /** Of one query, from when it runs; also of making a fixture. Default 2000. */
  readonly timeoutMs?: number;
  /** Rows of a result at most; default 10 000. */
  readonly maxRows?: number;
  /** Of SQLite; default 64 MB. */
  readonly memoryBytes?: number;
}

interface Job {
  readonly name: string;
  readonly sql: string | null;
  readonly signal: AbortSignal | undefined;
  readonly resolve: (rows: SqlRows) => void;
  readonly reject: (error: unknown) => void;
}

type Message =
  | { readonly id: number; readonly type: 'started' }
  | {
      readonly id: number;
      readonly type: 'answer';
      readonly answer: SqlRows | { readonly status: 'broken'; readonly reason: string };
    };

/** Loading SQLite and running the scripts may take a slow machine this much more than a query. */
const startMs = 30_000;

/** One worker with the fixtures, started anew whenever it had to be ended. Queries run one after another. */
export class SqlDatabases implements AsyncDisposable {
  readonly #scripts: Readonly<Record<string, string>>;
  readonly #limits: Required<SqlDatabasesOptions>;
  readonly #queue: Job[] = [];
  #worker: Worker | undefined;
  #isBusy = false;
  #isClosed = false;
  #count = 0;

  /** Use {@link openSqlDatabases}, which also tries the scripts. */
  constructor(scripts: Readonly<Record<string, string>>, options: SqlDatabasesOptions) {
    const { timeoutMs = 2000, maxRows = 10_000, memoryBytes = 64_000_000 } = options;
    for (const [field, value] of Object.entries({ timeoutMs, maxRows, memoryBytes }))
      if (!(Number.isInteger(value) && value > 0 && value < 2 ** 31))
        throw complaint({ field, expected: 'a whole number above 0', got: String(value) });
    this.#scripts = { ...scripts };
    this.#limits = { timeoutMs, maxRows, memoryBytes };
  }

  /** @internal */
  get names(): readonly string[] {
    return Object.keys(this.#scripts);
  }

  /**
   * Runs one statement that only reads. `null` only opens the fixture.
   *
   * @throws `invalid_argument` for an unknown database or a script that fails; `grader_failed` where the worker can't start; `disposed`
   */
  query(name: string, sql: string | null, signal?: AbortSignal): Promise<SqlRows> {
    return new Promise((resolve, reject) => {
      if (this.#isClosed) throw disposed();
      if (signal?.aborted === true) throw signal.reason;
      if (!Object.hasOwn(this.#scripts, name))
        throw complaint({ field: 'database', expected: `one of ${this.names.join(', ')}`, got: typeof name });
      this.#queue.push({ name, sql, signal, resolve, reject });
      void this.#next();
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const { reject } of this.#queue.splice(0)) reject(disposed());
    await this.#end();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #next(): Promise<void> {
    if (this.#isBusy) return;
    this.#isBusy = true;
    for (let job = this.#queue.shift(); job !== undefined; job = this.#queue.shift()) {
      try {
        job.resolve(await this.#run(job));
      } catch (error) {
        job.reject(error);
      }
    }
    this.#isBusy = false;
  }

  async #run({ name, sql, signal }: Job): Promise<SqlRows> {
    if (signal?.aborted === true) throw signal.reason;
    this.#worker ??= this.#start();
    const worker = this.#worker;
    const id = ++this.#count;
    const { timeoutMs } = this.#limits;
    worker.ref();
    let stop = (): void => {};
    try {
      return await new Promise<SqlRows>((resolve, reject) => {
        let hasStarted = false;
        let timer = setTimeout(late, startMs + timeoutMs);
        const self = this;
        function late(): void {
          // SQLite ends a query by itself; one step of it may be long, and is ended with the worker.
          void self.#end();
          if (hasStarted) resolve({ status: 'failed', reason: 'stopped at its deadline' });
          else reject(scriptFault(name, 'it takes too long'));
        }
        const onMessage = (message: Message): void => {
          if (message.id !== id) return;
          if (message.type === 'started') {
            hasStarted = true;
            clearTimeout(timer);
            timer = setTimeout(late, timeoutMs + 500);
          } else if (message.answer.status === 'broken') reject(scriptFault(name, message.answer.reason));
          else resolve(message.answer);
        };
        const onExit = (): void => {
          this.#worker = undefined;
          if (this.#isClosed) reject(disposed());
          else resolve({ status: 'failed', reason: 'it ended the process of the database' });
        };
        const onError = (cause: unknown): void =>
          reject(new LoopwrightError({ code: 'grader_failed', message: 'the worker of the databases failed', cause }));
        const onAbort = (): void => {
          void this.#end();
          reject(signal?.reason);
        };
        stop = () => {
          clearTimeout(timer);
          worker.off('message', onMessage).off('exit', onExit).off('error', onError);
          signal?.removeEventListener('abort', onAbort);
        };
        worker.on('message', onMessage).on('exit', onExit).on('error', onError);
        signal?.addEventListener('abort', onAbort, { once: true });
        worker.postMessage({ id, name, sql, timeoutMs });
      });
    } finally {
      stop();
      worker.unref();
    }
  }

  #start(): Worker {
    const { maxRows, memoryBytes } = this.#limits;
    const module = pathToFileURL(createRequire(import.meta.url).resolve('@sqlite.org/sqlite-wasm')).href;
    const worker = new Worker(workerSource, {
      ...{ eval: true, env: {}, execArgv: [], stdin: false, stdout: true, stderr: true },
      resourceLimits: { maxOldGenerationSizeMb: 256 },
      workerData: { module, maxRows, memoryBytes, scripts: this.#scripts },
    });
    worker.on('error', () => {
      if (this.#worker === worker) this.#worker = undefined;
    });
    return worker;
  }

  async #end(): Promise<void> {
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }
}

/**
 * Opens fixture databases from SQL scripts, by name. Close them after the run.
 *
 * @throws `invalid_argument`, field `scripts.<name>`, for a script that fails
 * @example
 * await using databases = await openSqlDatabases({ shop: 'CREATE TABLE sold (item TEXT, price REAL); INSERT INTO sold VALUES …' });
 */
export async function openSqlDatabases(
  scripts: Readonly<Record<string, string>>,
  options: SqlDatabasesOptions = {},
): Promise<SqlDatabases> {
  const databases = new SqlDatabases(scripts, options);
  if (databases.names.length === 0) throw complaint({ field: 'scripts', expected: 'at least one', got: 'none' });
  try {
    for (const name of databases.names) await databases.query(name, null);
    return databases;
  } catch (error) {
    await databases.close();
    throw error;
  }
}

function scriptFault(name: string, got: string): LoopwrightError {
  return complaint({ field: `scripts.${name}`, expected: 'a script that makes a database', got });
}

function disposed(): LoopwrightError {
  return new LoopwrightError({ code: 'disposed', message: 'the databases were closed' });
}
