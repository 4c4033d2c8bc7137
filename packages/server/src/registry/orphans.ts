/** Blobs that no row ever named: a process that dies between the writing of a large payload, or of a version's files, and its commit leaves them. */
import type { BlobRef, BlobStore } from '../blobs/blob-store.js';
import { discardBlobs } from '../store/garbage.js';
import type { Database } from '../store/open-database.js';

/** Well below what a statement of SQLite takes. */
const batchSize = 1000;

/** Notes them as garbage, for the next collection, which looks once more; to be called once after a start. @returns how many */
export async function noteOrphans({ database, blobs }: { database: Database; blobs: BlobStore }): Promise<number> {
  let count = 0;
  let batch: BlobRef[] = [];
  const note = async (): Promise<void> => {
    const orphans = await withoutRow(database, batch);
    count += orphans.length;
    batch = [];
    if (orphans.length === 0) return;
    const rows = orphans.map(({ workspaceId, hash }) => ({ workspace_id: workspaceId, blob: hash }));
    await database.transaction().execute((trx) => discardBlobs(trx, rows));
  };
  for await (const ref of blobs.all()) {
    batch.push(ref);
    if (batch.length === batchSize) await note();
  }
  if (batch.length > 0) await note();
  return count;
}

async function withoutRow(database: Database, refs: readonly BlobRef[]): Promise<BlobRef[]> {
  const hashes = refs.map(({ hash }) => hash);
  const named = await Promise.all([
    database.selectFrom('version_files').select(['workspace_id', 'blob as hash']).where('blob', 'in', hashes).execute(),
    database
      .selectFrom('operations')
      .select(['workspace_id', 'payload_blob as hash'])
      .where('payload_blob', 'in', hashes)
      .execute(),
    database
      .selectFrom('operations')
      .select(['workspace_id', 'result_blob as hash'])
      .where('result_blob', 'in', hashes)
      .execute(),
  ]);
  const known = new Set(named.flat().map(({ workspace_id, hash }) => `${workspace_id}/${hash}`));
  return refs.filter(({ workspaceId, hash }) => !known.has(`${workspaceId}/${hash}`));
}
