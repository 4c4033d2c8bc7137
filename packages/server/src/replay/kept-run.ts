/**
 * What a replay came to, as a data directory of its own: the recorded log with other endings, results and saved files, so that two
 * replays can be compared as two runs are. It appears whole at the end, or not at all.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ExecutionPlan } from '@loopwright/engine';
import { asLoopwrightError, complaint, type VersionId } from '@loopwright/protocol';
import { FileBlobStore, storageError } from '../blobs/file-blob-store.js';
import { systemClock } from '../clock.js';
import type { OperationRecord } from '../operations/operation-record.js';
import { encodeResult } from '../operations/payload-codec.js';
import { Payloads } from '../operations/payloads.js';
import { type NewVersion, Registry } from '../registry/registry.js';
import { type Version, versionFromRow } from '../registry/version.js';
import { errorColumn, type SessionRecord } from '../sessions/session-record.js';
import { SessionRepository } from '../sessions/session-repository.js';
import { type Database, openDatabase } from '../store/open-database.js';
import { copyDatabase, databaseName, type RecordedData } from './recorded-data.js';
import type { ReplayedOutcome } from './replay-session.js';

export class KeptRun implements AsyncDisposable {
  /** For what the replay saves. */
  readonly blobs: FileBlobStore;
  readonly #data: RecordedData;
  readonly #target: string;
  readonly #directory: string;
  readonly #database: Database;
  readonly #payloads: Payloads;
  readonly #registry: Registry;
  readonly #saved = new Map<VersionId, Omit<NewVersion, 'files'>>();
  #isOver = false;

  private constructor(data: RecordedData, target: string, directory: string) {
    this.#data = data;
    this.#target = target;
    this.#directory = directory;
    this.#database = openDatabase(join(directory, databaseName), { durability: 'process-crash' });
    this.blobs = new FileBlobStore({ root: join(directory, 'blobs'), durability: 'process-crash' });
    this.#payloads = new Payloads({ database: this.#database, blobs: this.blobs });
    const versions = join(directory, 'versions');
    this.#registry = new Registry({
      ...{ database: this.#database, blobs: this.blobs, clock: systemClock, directory: versions },
    });
  }

  /**
   * Begins with the log of these sessions, in which nothing has run yet. Disposing before {@link finish} leaves nothing.
   *
   * @param target where it will be; new, or an empty directory
   * @throws `invalid_argument` for a target that holds something; `disk_full`
   */
  static async begin(data: RecordedData, sessions: readonly SessionRecord[], target: string): Promise<KeptRun> {
    await requireEmpty(target);
    const directory = `${target}.${randomUUID()}.tmp`;
    try {
      await mkdir(dirname(target), { recursive: true });
      await copyDatabase(data.temporaryDirectory, directory);
      const kept = new KeptRun(data, target, directory);
      try {
        await kept.#clear(sessions);
        return kept;
      } catch (error) {
        await kept[Symbol.asyncDispose]();
        throw error;
      }
    } catch (error) {
      await rm(directory, { recursive: true, force: true });
      throw isStorage(error) ? storageError(error) : error;
    }
  }

  /** Notes the plan by which a session is run again, and takes its inputs over. */
  async beginSession(session: SessionRecord, plan: ExecutionPlan): Promise<void> {
    const { workspaceId, id } = session;
    await this.#database
      .updateTable('sessions')
      .set({ plan: JSON.stringify(plan) })
      .where('id', '=', id)
      .execute();
    const records = await this.#data.log.ofSession(id);
    const recorded = new Payloads({ database: this.#database, blobs: this.#data.blobs });
    for (const { payloadBlob } of records) {
      // Small ones came with the database, the damaged among them too; large ones that are damaged are missing here, and told as such.
      const bytes = await recorded.get({ workspaceId, hash: payloadBlob }).catch(asLoopwrightError);
      if (bytes instanceof Uint8Array) await this.#payloads.stage(workspaceId, bytes);
    }
  }

  /** Takes over what an operation came to; its files are in {@link blobs}. */
  async ended(record: OperationRecord, outcome: ReplayedOutcome): Promise<void> {
    const { workspaceId, id } = record;
    const isDone = outcome.status === 'Completed';
    const { done } = isDone ? outcome : {};
    const result =
      done === undefined ? undefined : await this.#payloads.stage(workspaceId, encodeResult(done.type, done.result));
    await this.#database.transaction().execute(async (trx) => {
      await result?.write(trx);
      await trx
        .updateTable('operations')
        .set({
          status: outcome.status,
          result_blob: result?.hash ?? null,
          error: isDone ? null : errorColumn(outcome.error),
          ended_at_ms: record.endedAtMs,
        })
        .where('id', '=', id)
        .execute();
      const { version = '' } = record.resolved;
      const saved = this.#saved.get(version);
      if (isDone && outcome.files !== undefined && saved !== undefined)
        await this.#registry.insert(trx, { ...saved, files: outcome.files });
    });
  }

  /** Puts it where it was to be. */
  async finish(): Promise<void> {
    this.#isOver = true;
    await this.#database.destroy();
    try {
      await rm(join(this.#directory, 'versions'), { recursive: true, force: true });
      await rmdir(this.#target).catch(() => {}); // an empty one may be there
      await rename(this.#directory, this.#target);
    } catch (error) {
      await rm(this.#directory, { recursive: true, force: true });
      throw storageError(error);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isOver) return;
    this.#isOver = true;
    await this.#database.destroy();
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** Leaves of the copied database what these sessions are made of, ended and with nothing run. */
  async #clear(sessions: readonly SessionRecord[]): Promise<void> {
    const database = this.#database;
    const ids = sessions.map(({ id }) => id);
    const repository = new SessionRepository(database, systemClock);
    for (const { id } of this.#data.sessions) if (!ids.includes(id)) await repository.remove(id);
    await database.deleteFrom('ledger').execute(); // a replay costs nobody anything
    await database.deleteFrom('garbage').execute();
    await database.deleteFrom('snapshots').execute(); // their files stay where they are
    const read = await database.selectFrom('operations').select('reads_version').distinct().execute();
    const reads = new Set(read.map(({ reads_version }) => reads_version));
    for (const row of await database.selectFrom('versions').selectAll().execute()) {
      const version = versionFromRow(row, systemClock.now());
      const isOwn = ids.includes(version.lineage.sessionId);
      if (isOwn) this.#saved.set(version.id, { ...version, data: row.data === null ? null : JSON.parse(row.data) });
      else if (reads.has(version.id)) await this.#takeOver(version);
      if (!isOwn && reads.has(version.id)) continue;
      for (const [table, column] of [
        ['version_files', 'version_id'],
        ['version_metrics', 'version_id'],
        ['versions', 'id'],
      ] as const) {
        await database
          .deleteFrom(table)
          .where('workspace_id', '=', version.workspaceId)
          .where(column as 'id', '=', version.id) // true: the column of that table
          .execute();
      }
    }
    const now = systemClock.now();
    await database.updateTable('sessions').set({ status: 'Stopped', ended_at_ms: now }).execute();
    await database
      .updateTable('operations')
      .set({ status: 'Pending', result_blob: null, ended_at_ms: null })
      .where('status', '=', 'Completed')
      .execute();
  }

  /** A version of another session, as it was recorded. One that is gone stays gone. */
  async #takeOver({ workspaceId, id }: Version): Promise<void> {
    const files = await this.#data.registry.files(workspaceId, id);
    if (files.length === 0) return;
    const directory = await this.#data.registry.directory(workspaceId, id).catch(asLoopwrightError);
    if (typeof directory !== 'string') return; // damaged: missing here, and told as such
    await this.blobs.adopt(
      workspaceId,
      directory,
      files.map(({ path }) => path),
    );
  }
}

async function requireEmpty(target: string): Promise<void> {
  const found = await readdir(target).then(
    (names) => (names.length === 0 ? undefined : `a directory with ${names.length} entries`),
    (error: NodeJS.ErrnoException) =>
      error.code === 'ENOENT' ? undefined : 'a file, or a directory that can’t be read',
  );
  if (found === undefined) return;
  throw complaint({
    field: 'keep',
    expected: 'a new or empty directory',
    got: found,
    remedy: 'name another, or remove it first',
  });
}

function isStorage(error: unknown): boolean {
  return typeof error === 'object' && error !== null && 'syscall' in error;
}
