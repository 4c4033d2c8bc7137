/** Garbage collection: versions that were deleted or have expired lose their files once nothing reads them, and deleted sessions what they stored. */
import type { VersionId } from '@loopwright/protocol';
import type { Kysely } from 'kysely';
import type { BlobStore } from '../blobs/blob-store.js';
import type { Clock } from '../clock.js';
import { liveStatuses } from '../sessions/session-record.js';
import { discardBlobs } from '../store/garbage.js';
import type { Database } from '../store/open-database.js';
import type { Tables } from '../store/tables.js';
import type { Registry } from './registry.js';

export interface CollectorOptions {
  readonly database: Database;
  readonly blobs: BlobStore;
  readonly registry: Registry;
  readonly clock: Clock;
}

/** How much went. */
export interface Collected {
  readonly versions: number;
  readonly blobs: number;
}

/** Collects once. */
export async function collectGarbage({ database, blobs, registry, clock }: CollectorOptions): Promise<Collected> {
  const ended = await database
    .selectFrom('versions')
    .select(['workspace_id', 'id'])
    .where('collected_at_ms', 'is', null)
    .where((is) => is.or([is('deleted_at_ms', 'is not', null), is('expires_at_ms', '<=', clock.now())]))
    .execute();
  let versions = 0;
  for (const { workspace_id: workspaceId, id } of ended) {
    if (!(await releaseFiles(database, { workspaceId, id, nowMs: clock.now() }))) continue;
    await registry.removeDirectory(workspaceId, id);
    versions += 1;
  }
  return { versions, blobs: await deleteGarbage(database, blobs) };
}

interface EndedVersion {
  readonly workspaceId: string;
  readonly id: VersionId;
  readonly nowMs: number;
}

/**
 * Takes the files away from a version; its row stays, so that it can be told what became of it and the lineage of others stays whole.
 * False while an open operation reads it, or a live session may have to be rebuilt from it; and when somebody has just kept it.
 */
async function releaseFiles(database: Database, { workspaceId, id, nowMs }: EndedVersion): Promise<boolean> {
  return database.transaction().execute(async (trx) => {
    const version = await trx
      .selectFrom('versions')
      .select(['deleted_at_ms', 'expires_at_ms'])
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .executeTakeFirstOrThrow();
    const { deleted_at_ms: deletedAtMs, expires_at_ms: expiresAtMs } = version;
    if (deletedAtMs === null && (expiresAtMs === null || expiresAtMs > nowMs)) return false;
    const reader = await trx
      .selectFrom('operations')
      .innerJoin('sessions', 'sessions.id', 'operations.session_id')
      .select('operations.id')
      .where('operations.reads_version', '=', id)
      .where('operations.workspace_id', '=', workspaceId)
      .where('sessions.status', 'in', liveStatuses)
      .where((is) => is.or([is('operations.ended_at_ms', 'is', null), is('operations.kind', '=', 'training')]))
      .limit(1)
      .executeTakeFirst();
    if (reader !== undefined) return false;
    const files = await trx
      .deleteFrom('version_files')
      .where('workspace_id', '=', workspaceId)
      .where('version_id', '=', id)
      .returning(['workspace_id', 'blob'])
      .execute();
    await trx
      .updateTable('versions')
      .set({ collected_at_ms: nowMs })
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .execute();
    await discardBlobs(trx, files);
    return true;
  });
}

/** Deletes the noted blobs and small payloads that no version, payload or result refers to; young ones stay noted for the next time. */
async function deleteGarbage(database: Database, blobs: BlobStore): Promise<number> {
  let count = 0;
  for (const { workspace_id: workspaceId, blob } of await database.selectFrom('garbage').selectAll().execute()) {
    const referenced = await database.transaction().execute(async (trx) => {
      if (await isReferenced(trx, workspaceId, blob)) return true;
      await trx.deleteFrom('small_payloads').where('workspace_id', '=', workspaceId).where('hash', '=', blob).execute();
      return false;
    });
    if (!referenced && !(await blobs.delete({ workspaceId, hash: blob }))) continue;
    if (!referenced) count += 1;
    await database.deleteFrom('garbage').where('workspace_id', '=', workspaceId).where('blob', '=', blob).execute();
  }
  return count;
}

async function isReferenced(database: Kysely<Tables>, workspaceId: string, blob: string): Promise<boolean> {
  const file = await database
    .selectFrom('version_files')
    .select('path')
    .where('workspace_id', '=', workspaceId)
    .where('blob', '=', blob)
    .limit(1)
    .executeTakeFirst();
  if (file !== undefined) return true;
  const operation = await database
    .selectFrom('operations')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where((is) => is.or([is('payload_blob', '=', blob), is('result_blob', '=', blob)]))
    .limit(1)
    .executeTakeFirst();
  return operation !== undefined;
}
