/**
 * Transactions that come at the same moment share one commit, and so one wait for the disk (0.3 ms and more): the eight sampling requests of
 * a step are accepted in one or two. Each is still atomic by itself. The next ones are at work while these wait.
 */
import { sql, type Transaction } from 'kysely';
import type { Database } from './open-database.js';
import type { Tables } from './tables.js';

type Work<T> = (trx: Transaction<Tables>) => Promise<T>;

interface Job {
  readonly work: Work<unknown>;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

type Outcome = { readonly value: unknown } | { readonly error: unknown };

/** So that one commit does not grow without end. */
const maxJobs = 64;

export class GroupCommit {
  readonly #database: Database;
  #jobs: Job[] = [];
  #draining = false;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Runs work in a transaction. Resolves once it is on the disk; a failure undoes this work alone. */
  async run<T>(work: Work<T>): Promise<T> {
    const value = await this.commit(work);
    await this.#database.durable();
    return value;
  }

  /** As {@link run}, without the wait for the disk: nobody may be told of it until the database says `durable`. */
  commit<T>(work: Work<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#jobs.push({ work, resolve: resolve as Job['resolve'], reject }); // true: it is given what `work` returned
      if (this.#draining) return;
      this.#draining = true;
      setImmediate(() => {
        this.#drain().catch(reject); // it settles every job itself
      });
    });
  }

  async #drain(): Promise<void> {
    while (this.#jobs.length > 0) {
      const jobs = this.#jobs.slice(0, maxJobs);
      this.#jobs = this.#jobs.slice(maxJobs);
      await this.#commit(jobs);
    }
    this.#draining = false;
  }

  async #commit(jobs: readonly Job[]): Promise<void> {
    let outcomes: readonly Outcome[];
    try {
      outcomes = await this.#database.commitEarly(async (trx) => {
        // One that is alone is undone with its transaction.
        if (jobs.length === 1) return [{ value: await jobs[0]!.work(trx) }];
        const done: Outcome[] = [];
        for (const { work } of jobs) done.push(await attempt(trx, work));
        return done;
      });
    } catch (error) {
      for (const { reject } of jobs) reject(error); // nothing was committed
      return;
    }
    jobs.forEach(({ resolve, reject }, index) => {
      const outcome = outcomes[index]!;
      if ('value' in outcome) resolve(outcome.value);
      else reject(outcome.error);
    });
  }
}

async function attempt(trx: Transaction<Tables>, work: Work<unknown>): Promise<Outcome> {
  await sql`SAVEPOINT job`.execute(trx);
  try {
    const value = await work(trx);
    await sql`RELEASE job`.execute(trx);
    return { value };
  } catch (error) {
    try {
      await sql`ROLLBACK TO job`.execute(trx);
      await sql`RELEASE job`.execute(trx);
    } catch {
      // SQLite has undone the whole transaction, as it does when the disk is full: none of the jobs may count.
      throw error;
    }
    return { error };
  }
}
