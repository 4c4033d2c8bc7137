/** Listing versions by page. */
import { type ApprovalStatus, complaint, type VersionKind } from '@loopwright/protocol';
import type { Page } from '../sessions/session-repository.js';
import type { Database } from '../store/open-database.js';
import { type Version, versionFromRow } from './version.js';

export interface VersionFilter {
  readonly groupName?: string;
  readonly kind?: VersionKind;
  readonly approval?: {
    readonly status: ApprovalStatus;
    /** What the caller's API calls those of which nobody has said anything. */
    readonly undecided: ApprovalStatus;
  };
  readonly sessionName?: string;
  /** Exclusive. */
  readonly createdAfterMs?: number;
  /** Exclusive. */
  readonly createdBeforeMs?: number;
  /** A tag that they have, with this value where one is given. */
  readonly tag?: { readonly key: string; readonly value?: string };
  readonly oldestFirst?: boolean;
  /** Also those that have expired or were deleted. */
  readonly includeEnded?: boolean;
}

export interface PageRequest {
  readonly limit: number;
  /** The `next` of the page before. */
  readonly after?: string;
}

/** Newest first unless told otherwise. A version that comes or goes meanwhile moves no other to another page. */
export async function listVersions(
  database: Database,
  filter: VersionFilter & { readonly workspaceId: string; readonly nowMs: number },
  { limit, after }: PageRequest,
): Promise<Page<Version>> {
  const { nowMs, oldestFirst = false } = filter;
  const direction = oldestFirst ? 'asc' : 'desc';
  let query = database.selectFrom('versions').selectAll().where('workspace_id', '=', filter.workspaceId);
  if (filter.includeEnded !== true) {
    query = query
      .where('deleted_at_ms', 'is', null)
      .where((is) => is.or([is('expires_at_ms', 'is', null), is('expires_at_ms', '>', nowMs)]));
  }
  if (filter.groupName !== undefined) query = query.where('group_name', '=', filter.groupName);
  if (filter.kind !== undefined) query = query.where('kind', '=', filter.kind);
  if (filter.approval !== undefined) {
    const { status, undecided } = filter.approval;
    query = query.where((is) => {
      const decided = is.and([is('approval_at_ms', 'is not', null), is('approval_status', '=', status)]);
      return status === undecided ? is.or([decided, is('approval_at_ms', 'is', null)]) : decided;
    });
  }
  if (filter.sessionName !== undefined) query = query.where('session_name', '=', filter.sessionName);
  if (filter.createdAfterMs !== undefined) query = query.where('created_at_ms', '>', filter.createdAfterMs);
  if (filter.createdBeforeMs !== undefined) query = query.where('created_at_ms', '<', filter.createdBeforeMs);
  if (filter.tag !== undefined) {
    const { key, value } = filter.tag;
    query = query.where(({ exists, selectFrom }) => {
      const found = selectFrom(({ fn, ref }) =>
        fn<{ key: string; value: string }>('json_each', [ref('versions.tags')]).as('tag'),
      )
        .select('tag.key')
        .where('tag.key', '=', key);
      return exists(value === undefined ? found : found.where('tag.value', '=', value));
    });
  }
  if (after !== undefined) {
    const { atMs, number, id } = parseCursor(after);
    const past = oldestFirst ? '>' : '<';
    query = query.where((is) =>
      is.or([
        is('created_at_ms', past, atMs),
        is.and([is('created_at_ms', '=', atMs), is('number', past, number)]),
        is.and([is('created_at_ms', '=', atMs), is('number', '=', number), is('id', past, id)]),
      ]),
    );
  }
  const rows = await query
    .orderBy('created_at_ms', direction)
    .orderBy('number', direction)
    .orderBy('id', direction)
    .limit(limit + 1)
    .execute();
  const items = rows.slice(0, limit).map((row) => versionFromRow(row, nowMs));
  const last = items.at(-1);
  return rows.length > limit && last !== undefined
    ? { items, next: `${last.createdAtMs}.${last.number}.${last.id}` }
    : { items };
}

function parseCursor(token: string): { atMs: number; number: number; id: string } {
  const match = /^(\d{1,16})\.(\d{1,9})\.(.{1,2100})$/.exec(token);
  if (match === null) {
    throw complaint({
      field: 'NextToken',
      expected: 'the token of an earlier page',
      got: `${token.length} characters`,
    });
  }
  return { atMs: Number(match[1]), number: Number(match[2]), id: match[3]! };
}
