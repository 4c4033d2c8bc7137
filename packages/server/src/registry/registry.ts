/** The registry of saved versions: groups of numbered, immutable versions whose files are blobs. */
import { join } from 'node:path';
import { complaint, type LoopwrightError, type VersionId } from '@loopwright/protocol';
import type { Transaction } from 'kysely';
import type { BlobStore, Manifest } from '../blobs/blob-store.js';
import type { Clock } from '../clock.js';
import type { Page } from '../sessions/session-repository.js';
import type { Database } from '../store/open-database.js';
import type { Tables } from '../store/tables.js';
import { type ModelPackageGroup, type Version, type VersionKind, versionFromRow } from './version.js';

export type NewVersion = Omit<Version, 'approvalStatus' | 'deletedAtMs' | 'createdAtMs' | 'sizeBytes'> & {
  readonly files: Manifest;
};

export interface VersionFilter {
  readonly groupName?: string;
  readonly kind?: VersionKind;
  readonly sessionName?: string;
  /** Exclusive. */
  readonly createdAfterMs?: number;
  /** Exclusive. */
  readonly createdBeforeMs?: number;
  readonly oldestFirst?: boolean;
}

export class Registry {
  readonly #database: Database;
  readonly #blobs: BlobStore;
  readonly #clock: Clock;
  readonly #directory: string;

  /** `directory` is where the files of versions are laid out for engines. */
  constructor({
    database,
    blobs,
    clock,
    directory,
  }: { database: Database; blobs: BlobStore; clock: Clock; directory: string }) {
    this.#database = database;
    this.#blobs = blobs;
    this.#clock = clock;
    this.#directory = directory;
  }

  /** Makes a group. False when it exists already. */
  createGroup(workspaceId: string, name: string, description = ''): Promise<boolean> {
    return this.#createGroup(this.#database, workspaceId, name, description);
  }

  async #createGroup(
    database: Database | Transaction<Tables>,
    workspaceId: string,
    name: string,
    description = '',
  ): Promise<boolean> {
    const row = { workspace_id: workspaceId, name, description, next_number: 1, created_at_ms: this.#clock.now() };
    const made = await database
      .insertInto('model_package_groups')
      .values(row)
      .onConflict((on) => on.doNothing())
      .executeTakeFirst();
    return (made.numInsertedOrUpdatedRows ?? 0n) > 0n;
  }

  /** @throws `not_found` */
  async group(workspaceId: string, name: string): Promise<ModelPackageGroup> {
    const row = await this.#database
      .selectFrom('model_package_groups')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .where('name', '=', name)
      .executeTakeFirst();
    if (row === undefined) {
      throw complaint({ code: 'not_found', field: 'group', expected: 'an existing model package group', got: name });
    }
    return { name: row.name, description: row.description, createdAtMs: row.created_at_ms };
  }

  /** Takes the next number of a group, which is made where it is missing. A number that is not used afterwards stays free. */
  async reserveId(trx: Transaction<Tables>, workspaceId: string, groupName: string): Promise<VersionId> {
    await this.#createGroup(trx, workspaceId, groupName);
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
    const { files } = version;
    await trx
      .insertInto('versions')
      .values({
        workspace_id: version.workspaceId,
        id: version.id,
        group_name: version.groupName,
        number: version.number,
        kind: version.kind,
        description: version.description,
        approval_status: 'Approved',
        base_model: version.baseModel,
        training: JSON.stringify(version.training),
        session_id: version.sessionId,
        session_name: version.sessionName,
        operation_id: version.operationId,
        step: version.step,
        parent: version.parent,
        size_bytes: files.reduce((sum, file) => sum + file.sizeBytes, 0),
        created_at_ms: this.#clock.now(),
        expires_at_ms: version.expiresAtMs,
        deleted_at_ms: null,
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
    const version = await this.#find(workspaceId, id);
    const isOver = version !== undefined && this.#isOver(version);
    if (version === undefined || isOver) throw unknownVersion(id, isOver || (await this.#wasGiven(workspaceId, id)));
    return version;
  }

  /** Newest first unless told otherwise; expired and deleted versions are left out. `after` is the `next` of the page before. */
  async list(
    workspaceId: string,
    filter: VersionFilter,
    { limit, after }: { readonly limit: number; readonly after?: string },
  ): Promise<Page<Version>> {
    const offset = after === undefined ? 0 : parseOffset(after);
    const direction = filter.oldestFirst === true ? 'asc' : 'desc';
    let query = this.#database
      .selectFrom('versions')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .where('deleted_at_ms', 'is', null)
      .where((is) => is.or([is('expires_at_ms', 'is', null), is('expires_at_ms', '>', this.#clock.now())]));
    if (filter.groupName !== undefined) query = query.where('group_name', '=', filter.groupName);
    if (filter.kind !== undefined) query = query.where('kind', '=', filter.kind);
    if (filter.sessionName !== undefined) query = query.where('session_name', '=', filter.sessionName);
    if (filter.createdAfterMs !== undefined) query = query.where('created_at_ms', '>', filter.createdAfterMs);
    if (filter.createdBeforeMs !== undefined) query = query.where('created_at_ms', '<', filter.createdBeforeMs);
    const rows = await query
      .orderBy('created_at_ms', direction)
      .orderBy('number', direction)
      .limit(limit + 1)
      .offset(offset)
      .execute();
    const items = rows.slice(0, limit).map(versionFromRow);
    return rows.length > limit ? { items, next: String(offset + limit) } : { items };
  }

  /** The version that an operation saved, if it is still there. */
  async ofOperation(workspaceId: string, operationId: string): Promise<Version | undefined> {
    const row = await this.#database
      .selectFrom('versions')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .where('operation_id', '=', operationId)
      .executeTakeFirst();
    const version = row === undefined ? undefined : versionFromRow(row);
    return version === undefined || this.#isOver(version) ? undefined : version;
  }

  /** Sets when a version expires, or (null) that it doesn't. @throws `unknown_version` */
  async expire(workspaceId: string, id: VersionId, expiresAtMs: number | null): Promise<void> {
    await this.get(workspaceId, id);
    await this.#database
      .updateTable('versions')
      .set({ expires_at_ms: expiresAtMs })
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .execute();
  }

  async files(workspaceId: string, id: VersionId): Promise<Manifest> {
    const rows = await this.#database
      .selectFrom('version_files')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .where('version_id', '=', id)
      .orderBy('path')
      .execute();
    return rows.map(({ path, blob, size_bytes }) => ({ path, hash: blob, sizeBytes: size_bytes }));
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

  /** Where the files of a version lie for an engine; laid out on the first call. Deleted versions work until they are collected. */
  async directory(workspaceId: string, id: VersionId): Promise<string> {
    const directory = this.directoryOf(workspaceId, id);
    const files = await this.files(workspaceId, id);
    if (files.length === 0) throw unknownVersion(id, true);
    await this.#blobs.materialize(workspaceId, files, directory);
    return directory;
  }

  /** The path alone. Group names may hold any character but a slash. */
  directoryOf(workspaceId: string, id: VersionId): string {
    const slash = id.lastIndexOf('/');
    const group = encodeURIComponent(id.slice(0, slash)).replace(/\./g, '%2E');
    return join(this.#directory, workspaceId, group, id.slice(slash + 1));
  }

  #isOver({ deletedAtMs, expiresAtMs }: Version): boolean {
    return deletedAtMs !== null || (expiresAtMs !== null && expiresAtMs <= this.#clock.now());
  }

  /** Whether the number of a version was given out, so that it once existed. */
  async #wasGiven(workspaceId: string, id: VersionId): Promise<boolean> {
    const slash = id.lastIndexOf('/');
    const group = await this.#database
      .selectFrom('model_package_groups')
      .select('next_number')
      .where('workspace_id', '=', workspaceId)
      .where('name', '=', id.slice(0, slash))
      .executeTakeFirst();
    return group !== undefined && Number(id.slice(slash + 1)) < group.next_number;
  }

  async #find(workspaceId: string, id: VersionId): Promise<Version | undefined> {
    const row = await this.#database
      .selectFrom('versions')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .executeTakeFirst();
    return row === undefined ? undefined : versionFromRow(row);
  }
}

function unknownVersion(id: VersionId, existed: boolean): LoopwrightError {
  const why = existed ? 'does not exist any more (deleted or expired)' : 'does not exist';
  return complaint({
    code: 'unknown_version',
    field: 'version',
    expected: 'a saved version',
    got: `${id.slice(0, 200)}, which ${why}`,
    remedy: 'list the versions to see which there are',
  });
}

function parseOffset(token: string): number {
  if (!/^\d{1,9}$/.test(token)) {
    throw complaint({
      field: 'NextToken',
      expected: 'the token of an earlier page',
      got: `${token.length} characters`,
    });
  }
  return Number(token);
}
