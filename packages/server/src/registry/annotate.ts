/** What people say of a version after it was saved: description, approval, tags, metrics, and until when it stays. */
import { complaint, type VersionChange, versionLimits } from '@loopwright/protocol';
import type { Transaction } from 'kysely';
import type { Tables } from '../store/tables.js';
import { changedTags } from './tags.js';
import type { Version } from './version.js';

/** Writes a change of a version that was just found available, in the same transaction. @throws `invalid_argument` for too many tags or metrics */
export async function annotate(
  trx: Transaction<Tables>,
  { workspaceId, id, tags }: Version,
  change: VersionChange,
  nowMs: number,
): Promise<void> {
  const { approval } = change;
  const set = {
    ...(change.description === undefined ? {} : { description: change.description }),
    ...(approval === undefined ? {} : { approval_note: approval.note }),
    ...(approval?.status === undefined ? {} : { approval_status: approval.status, approval_at_ms: nowMs }),
    ...(change.tags === undefined ? {} : { tags: JSON.stringify(changedTags(tags, change.tags)) }),
    ...(change.expiresAtMs === undefined ? {} : { expires_at_ms: change.expiresAtMs }),
  };
  if (Object.keys(set).length > 0) {
    await trx.updateTable('versions').set(set).where('workspace_id', '=', workspaceId).where('id', '=', id).execute();
  }
  const metrics = Object.entries(change.metrics ?? {});
  if (metrics.length === 0) return;
  for (const [name, metric] of metrics) {
    const row = { workspace_id: workspaceId, version_id: id, name };
    if (metric === null) {
      await trx
        .deleteFrom('version_metrics')
        .where('workspace_id', '=', workspaceId)
        .where('version_id', '=', id)
        .where('name', '=', name)
        .execute();
      continue;
    }
    const said = { value: metric.value, note: metric.note, at_ms: nowMs };
    await trx
      .insertInto('version_metrics')
      .values({ ...row, ...said })
      .onConflict((on) => on.columns(['workspace_id', 'version_id', 'name']).doUpdateSet(said))
      .execute();
  }
  const { count } = await trx
    .selectFrom('version_metrics')
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .where('workspace_id', '=', workspaceId)
    .where('version_id', '=', id)
    .executeTakeFirstOrThrow();
  if (count > versionLimits.metrics)
    throw complaint({ field: 'metrics', expected: `at most ${versionLimits.metrics}`, got: `${count} in all` });
}
