/**
 * Waits for the disk beside the event loop. The connection commits without waiting (`synchronous = NORMAL`, where SQLite itself syncs only
 * around checkpoints); a commit is durable once its write-ahead log has been synced, as `synchronous = FULL` would have done within the call.
 * Commits that wait at the same moment share one sync.
 */
import { type FileHandle, open } from 'node:fs/promises';
import { diskFull, LoopwrightError } from '@loopwright/protocol';

/** Brings a file's bytes onto the disk. */
export type SyncFile = (path: string) => Promise<void>;

export interface WalSyncOptions {
  /** The log of the database: its path and `-wal`. */
  readonly path: string;
  /** In tests, a disk that fails. */
  readonly sync?: SyncFile | undefined;
}

export class WalSync {
  readonly #path: string;
  readonly #sync: SyncFile;
  #file: Promise<FileHandle> | undefined;
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #isDirty = false;
  #isLate = false;
  #failure: LoopwrightError | undefined;

  constructor({ path, sync }: WalSyncOptions) {
    this.#path = path;
    this.#sync = sync ?? (() => this.#syncOpenFile());
  }

  /**
   * To be called after each write. Resolves when it is on the disk; inside of {@link late} at once.
   * @throws as {@link durable}
   */
  async written(): Promise<void> {
    this.#isDirty = true;
    if (!this.#isLate) await this.durable();
  }

  /** While `work` has the database to itself, its commits don't wait; whoever tells of them asks for {@link durable} first. */
  async late<T>(work: () => Promise<T>): Promise<T> {
    this.#isLate = true;
    try {
      return await work();
    } finally {
      this.#isLate = false;
    }
  }

  /**
   * Resolves when everything that was written before this call is on the disk.
   * @throws `disk_full` or `internal` when the disk could not confirm that; from then on always, since nobody knows what it holds
   */
  async durable(): Promise<void> {
    this.check();
    if (!this.#isDirty) return this.#running;
    // The one that runs may have begun before the last write.
    this.#next ??= this.#following(this.#running);
    return this.#next;
  }

  /** @throws as {@link durable}, when an earlier sync has failed: nothing more may be written */
  check(): void {
    if (this.#failure !== undefined) throw this.#failure;
  }

  async close(): Promise<void> {
    await this.durable().catch(() => undefined);
    const file = await this.#file?.catch(() => undefined);
    this.#file = undefined;
    await file?.close();
  }

  async #following(running: Promise<void> | undefined): Promise<void> {
    await running; // its failure is that of all who come later
    const run = this.#run();
    this.#running = run;
    this.#next = undefined;
    this.#isDirty = false;
    await run;
    if (this.#running === run) this.#running = undefined;
  }

  async #run(): Promise<void> {
    try {
      await this.#sync(this.#path);
    } catch (error) {
      this.#failure = failure(error);
      throw this.#failure;
    }
  }

  async #syncOpenFile(): Promise<void> {
    // The log is never replaced while the database is open. Writable, since some systems sync no other.
    this.#file ??= open(this.#path, 'r+');
    await (await this.#file).datasync();
  }
}

function failure(cause: unknown): LoopwrightError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'failed';
  if (code === 'ENOSPC' || code === 'EDQUOT') return diskFull({ field: 'dataDir', got: code, cause });
  return new LoopwrightError({
    code: 'internal',
    message: `dataDir: the disk did not confirm a write of the database (${code}); restart the server: it goes on from what the disk holds`,
    cause,
  });
}
