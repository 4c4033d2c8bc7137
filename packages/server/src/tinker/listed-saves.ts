/** Queries on saves that are still there: those that a listing shows, and those that others of the same path went over. */
import type { SaveKind } from '@loopwright/wires/tinker';
import type { Database } from '../store/open-database.js';
import type { Part, SaveRow } from './repository.js';

/** A save with what its version says. */
export interface ListedSave extends SaveRow {
  readonly version_id: string;
  readonly size_bytes: number;
  readonly saved_at_ms: number;
  readonly expires_at_ms: number | null;
}

export interface SaveFilter {
  readonly workspaceId: string;
  readonly nowMs: number;
  readonly modelId?: string | undefined;
  readonly kinds?: readonly SaveKind[] | undefined;
}

/** Newest first, of each path the newest alone. All without a part. */
export async function listSaves(database: Database, filter: SaveFilter, part?: Part): Promise<ListedSave[]> {
  const query = rankedSaves(database, filter)
    .selectAll('ranked')
    .where('age', '=', 1)
    .orderBy('created_at_ms', 'desc')
    .orderBy('operation_id');
  return (part === undefined ? query : query.limit(part.limit).offset(part.offset)).execute();
}

/** How many `listSaves` has without a part. */
export async function countSaves(database: Database, filter: SaveFilter): Promise<number> {
  const query = rankedSaves(database, filter).where('age', '=', 1);
  const { total } = await query.select(({ fn }) => fn.countAll<number>().as('total')).executeTakeFirstOrThrow();
  return Number(total);
}

/** The ids of versions that others of the same path went over. */
export async function replacedVersions(database: Database, filter: SaveFilter): Promise<string[]> {
  const rows = await rankedSaves(database, filter).select('version_id').where('age', '>', 1).execute();
  return rows.map(({ version_id }) => version_id);
}

/** Saves whose versions are available, each with its age among those of its path: 1 is the newest. */
function rankedSaves(database: Database, { workspaceId, nowMs, modelId, kinds }: SaveFilter) {
  let saves = database
    .selectFrom('tinker_saves as saves')
    .innerJoin('versions', (join) =>
      join
        .onRef('versions.workspace_id', '=', 'saves.workspace_id')
        .onRef('versions.operation_id', '=', 'saves.operation_id')
        .on('versions.deleted_at_ms', 'is', null)
        .on((is) => is.or([is('versions.expires_at_ms', 'is', null), is('versions.expires_at_ms', '>', nowMs)])),
    )
    .where('saves.workspace_id', '=', workspaceId)
    .selectAll('saves')
    .select(({ fn }) => [
      'versions.id as version_id',
      'versions.size_bytes',
      'versions.created_at_ms as saved_at_ms',
      'versions.expires_at_ms',
      fn
        .agg<number>('row_number')
        .over((over) =>
          over
            .partitionBy(['saves.model_id', 'saves.kind', 'saves.name'])
            .orderBy('saves.created_at_ms', 'desc')
            .orderBy('saves.operation_id'),
        )
        .as('age'),
    ]);
  if (modelId !== undefined) saves = saves.where('saves.model_id', '=', modelId);
  if (kinds !== undefined) saves = saves.where('saves.kind', 'in', kinds);
  return database.selectFrom(saves.as('ranked'));
}
