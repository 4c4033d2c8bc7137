/** The registry of saved versions: numbered, in groups; their files are blobs and never change, what is said of them may. */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import {
  complaint,
  type LoopwrightError,
  type TrainingSpec,
  type VersionChange,
  type VersionId,
  type VersionKind,
  type VersionState,
} from '@loopwright/protocol';
import type { Transaction } from 'kysely';
import type { BlobStore, Manifest } from '../blobs/blob-store.js';
import type { Clock } from '../clock.js';
import type { Page } from '../sessions/session-repository.js';
import type { Database } from '../store/open-database.js';
import { prepared } from '../store/prepared.js';
import type { Tables } from '../store/tables.js';
import { annotate } from './annotate.js';
import { Groups } from './groups.js';
import { listVersions, type PageRequest, type VersionFilter } from './list-versions.js';
import { type DescribedVersion, type NotedData, undecided, type Version, versionFromRow } from './version.js';

export interface NewVersion {
  readonly workspaceId: string;
  readonly id: VersionId;
  readonly groupName: string;
  readonly number: number;
  readonly kind: VersionKind;
  readonly description: string;
  readonly baseModel: string;
  readonly training: TrainingSpec;
  readonly lineage: {
    readonly sessionId: string;
    readonly sessionName: string;
    readonly operationId: string;
    readonly step: number;
    readonly parent: VersionId | null;
  };
  readonly data: NotedData | null;
  readonly expiresAtMs: number | null;
  readonly files: Manifest;
}

interface Named {
  readonly workspaceId: string;
  readonly id: VersionId;
}

const versionOf = prepared<Named>()((database, { workspaceId, id }) =>
  database.selectFrom('versions').selectAll().where('workspace_id', '=', workspaceId).where('id', '=', id),
);
const filesOf = prepared<Named>()((database, { workspaceId, id }) =>
  database
    .selectFrom('version_files')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .where('version_id', '=', id)
    .orderBy('path'),
);

const lookAgainMs = 1_000;
/** More would be versions of long ago. */
const maxSeen = 1_000;

export class Registry {
  readonly groups: Groups;
  readonly #database: Database;
  readonly #blobs: BlobStore;
  readonly #clock: Clock;
  readonly #directory: string;
  /** When the files of a version were last seen whole, by their directory. */
  readonly #seenWhole = new Map<string, number>();

  /** `directory` is where the files of versions are laid out for engines. */
  constructor({
    database,
    blobs,
    clock,
    directory,
  }: { database: Database; blobs: BlobStore; clock: Clock; directory: string }) {
    this.groups = new Groups({ database, clock });
    this.#database = database;
    this.#blobs = blobs;
    this.#clock = clock;
    this.#directory = directory;
  }

  /** Takes the next number of a group, which is made where it is missing. A number that is not used afterwards stays free. */
  async reserveId(trx: Transaction<Tables>, workspaceId: string, groupName: string): Promise<VersionId> {
    await this.groups.create(workspaceId, { name: groupName }, trx);
    const row = await trx
      .updateTable('model_package_groups')
      .set(({ eb }) => ({ next_number: eb('next_number', '+', 1) }))
      .where('workspace_id', '=', workspaceId)
      .where('name', '=', groupName)
      .returning('next_number')
      .executeTakeFirstOrThrow();
    return `${groupName}/${row.next_number - 1}`;
  }

  /** Adds a version within the transaction of the save that made it, so that a half-written one is never listed. */
  async insert(trx: Transaction<Tables>, version: NewVersion): Promise<void> {
    const { files, lineage } = version;
    await trx
      .insertInto('versions')
      .values({
        workspace_id: version.workspaceId,
        id: version.id,
        group_name: version.groupName,
        number: version.number,
        kind: version.kind,
        description: version.description,
        approval_status: undecided,
        approval_note: '',
        approval_at_ms: null,
        base_model: version.baseModel,
        training: JSON.stringify(version.training),
        session_id: lineage.sessionId,
        session_name: lineage.sessionName,
        operation_id: lineage.operationId,
        step: lineage.step,
        parent: lineage.parent,
        data: version.data === null ? null : JSON.stringify(version.data),
        tags: '{}',
        size_bytes: files.reduce((sum, file) => sum + file.sizeBytes, 0),
        created_at_ms: this.#clock.now(),
        expires_at_ms: version.expiresAtMs,
        deleted_at_ms: null,
        collected_at_ms: null,
      })
      .execute();
    const rows = files.map(({ path, hash, sizeBytes }) => ({
      workspace_id: version.workspaceId,
      version_id: version.id,
      path,
      blob: hash,
      size_bytes: sizeBytes,
    }));
    if (rows.length > 0) await trx.insertInto('version_files').values(rows).execute();
  }

  /** @throws `unknown_version` when there is none, or it was deleted or has expired */
  async get(workspaceId: string, id: VersionId): Promise<Version> {
    return this.#available(this.#database, workspaceId, id);
  }

  /** A version with all that is known of it; also one that has expired or was deleted. @throws `unknown_version` when there never was one */
  async describe(workspaceId: string, id: VersionId): Promise<DescribedVersion> {
    const version = await this.#find(this.#database, workspaceId, id);
    if (version === undefined) throw unknownVersion(id);
    const rows = await this.#database
      .selectFrom('version_metrics')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .where('version_id', '=', id)
      .orderBy('name')
      .execute();
    const metrics = rows.map(({ name, value, note, at_ms }) => ({ name, value, note, atMs: at_ms }));
    return { ...version, metrics };
  }

  /** The version that an operation saved, if it is still there. */
  async ofOperation(workspaceId: string, operationId: string): Promise<Version | undefined> {
    const row = await this.#database
      .selectFrom('versions')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .where('operation_id', '=', operationId)
      .executeTakeFirst();
    const version = row === undefined ? undefined : versionFromRow(row, this.#clock.now());
    return version?.state === 'available' ? version : undefined;
  }

  /** Newest first unless told otherwise; expired and deleted versions are left out unless asked for. */
  list(workspaceId: string, filter: VersionFilter, page: PageRequest): Promise<Page<Version>> {
    return listVersions(this.#database, { ...filter, workspaceId, nowMs: this.#clock.now() }, page);
  }

  /** Empty once the files of a version are gone. */
  async files(workspaceId: string, id: VersionId): Promise<Manifest> {
    const { rows } = await filesOf(this.#database, { workspaceId, id });
    return rows.map(({ path, blob, size_bytes }) => ({ path, hash: blob, sizeBytes: size_bytes }));
  }

  /** Changes what is said of a version, all of it or nothing. @throws `unknown_version`; `invalid_argument` for too much, or a time to expire that has passed */
  async change(workspaceId: string, id: VersionId, change: VersionChange): Promise<DescribedVersion> {
    const now = this.#clock.now();
    const { expiresAtMs = null } = change;
    if (expiresAtMs !== null && expiresAtMs <= now)
      throw complaint({ field: 'expiresAtMs', expected: `a time after ${now}`, got: String(expiresAtMs) });
    await this.#database.transaction().execute(async (trx) => {
      await annotate(trx, await this.#available(trx, workspaceId, id), change, now);
    });
    return this.describe(workspaceId, id);
  }

  /** Hides a version at once; its files go with the next collection that finds nothing reading them. @throws `unknown_version` */
  async delete(workspaceId: string, id: VersionId): Promise<void> {
    await this.get(workspaceId, id);
    await this.#database
      .updateTable('versions')
      .set({ deleted_at_ms: this.#clock.now() })
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .execute();
  }

  /**
   * Where the files of a version lie for an engine; laid out on the first call, and looked at again at most once a second: an engine that
   * samples from a version has it in memory. Deleted versions work until they are collected.
   */
  async directory(workspaceId: string, id: VersionId): Promise<string> {
    const directory = this.directoryOf(workspaceId, id);
    const now = this.#clock.now();
    const seen = this.#seenWhole.get(directory);
    if (seen !== undefined && now >= seen && now - seen < lookAgainMs) return directory;
    const files = await this.files(workspaceId, id);
    if (files.length === 0) throw unknownVersion(id, (await this.#find(this.#database, workspaceId, id))?.state);
    await this.#blobs.materialize(workspaceId, files, directory);
    if (this.#seenWhole.size >= maxSeen) this.#seenWhole.clear();
    this.#seenWhole.set(directory, now);
    return directory;
  }

  /** Removes what was laid out of a version. */
  async removeDirectory(workspaceId: string, id: VersionId): Promise<void> {
    const directory = this.directoryOf(workspaceId, id);
    this.#seenWhole.delete(directory);
    await rm(directory, { recursive: true, force: true });
  }

  /** The path alone. Group names may hold any character but a slash. */
  directoryOf(workspaceId: string, id: VersionId): string {
    const slash = id.lastIndexOf('/');
    const group = encodeURIComponent(id.slice(0, slash)).replace(/\./g, '%2E');
    return join(this.#directory, workspaceId, group, id.slice(slash + 1));
  }

  async #available(database: Database | Transaction<Tables>, workspaceId: string, id: VersionId): Promise<Version> {
    const version = await this.#find(database, workspaceId, id);
    if (version?.state !== 'available') throw unknownVersion(id, version?.state);
    return version;
  }

  async #find(
    database: Database | Transaction<Tables>,
    workspaceId: string,
    id: VersionId,
  ): Promise<Version | undefined> {
    const [row] = (await versionOf(database, { workspaceId, id })).rows;
    return row === undefined ? undefined : versionFromRow(row, this.#clock.now());
  }
}

/** Why a version can't be had: there never was one, or what became of it. */
function unknownVersion(id: VersionId, state?: VersionState): LoopwrightError {
  const end = state === 'expired' ? 'it has expired' : 'it was deleted';
  const why = state === undefined ? 'does not exist' : `does not exist any more (${end})`;
  return complaint({
    code: 'unknown_version',
    field: 'version',
    expected: 'a saved version',
    got: `${id.slice(0, 200)}, which ${why}`,
    remedy: 'list the versions to see which there are',
  });
}
