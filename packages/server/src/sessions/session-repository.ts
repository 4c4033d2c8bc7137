/** Queries on sessions. */
import type { ExecutionPlan } from '@loopwright/engine';
import { complaint, type LoopwrightError, type SessionStatus } from '@loopwright/protocol';
import type { Clock } from '../clock.js';
import { discardBlobs } from '../store/garbage.js';
import type { Database } from '../store/open-database.js';
import { prepared } from '../store/prepared.js';
import { errorColumn, liveStatuses, type SessionRecord, servingPrefix, sessionFromRow } from './session-record.js';

export interface SessionFilter {
  readonly nameContains?: string;
  readonly status?: SessionStatus;
  /** Exclusive. */
  readonly createdAfterMs?: number;
  /** Exclusive. */
  readonly createdBeforeMs?: number;
}

export interface Page<T> {
  readonly items: readonly T[];
  /** Where the next page begins; absent on the last. */
  readonly next?: string;
}

export type NewSession = Omit<
  SessionRecord,
  | 'status'
  | 'plan'
  | 'error'
  | 'lastSequenceNumber'
  | 'nextSequenceNumber'
  | 'gradientIncomplete'
  | 'step'
  | 'samplerVersion'
  | 'trainer'
  | 'createdAtMs'
  | 'modifiedAtMs'
  | 'activeAtMs'
  | 'endedAtMs'
>;

export interface StatusChange {
  readonly from: readonly SessionStatus[];
  readonly to: SessionStatus;
  /** Absent leaves the column, null clears it. */
  readonly error?: LoopwrightError | null;
  readonly plan?: ExecutionPlan;
}

const byName = prepared<{ readonly workspaceId: string; readonly name: string }>()((database, { workspaceId, name }) =>
  database.selectFrom('sessions').selectAll().where('workspace_id', '=', workspaceId).where('name', '=', name),
);

const endedStatuses: readonly SessionStatus[] = ['Stopped', 'Failed', 'Expired'];

export class SessionRepository {
  readonly #database: Database;
  readonly #clock: Clock;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /**
   * Adds a session in state Created.
   * @throws `session_exists`; `quota_exceeded` when `maxLive` sessions live already, those that only sample not counted
   */
  async insert(session: NewSession, { maxLive }: { readonly maxLive: number }): Promise<void> {
    const now = this.#clock.now();
    await this.#database.transaction().execute(async (trx) => {
      const same = trx.selectFrom('sessions').select('id').where('workspace_id', '=', session.workspaceId);
      if ((await same.where('name', '=', session.name).executeTakeFirst()) !== undefined) {
        throw complaint({
          code: 'session_exists',
          field: 'name',
          expected: 'a name that no session has',
          got: session.name,
          remedy: 'choose another name, or delete that session',
        });
      }
      const rows = await trx
        .selectFrom('sessions')
        .selectAll()
        .where('workspace_id', '=', session.workspaceId)
        .where('status', 'in', liveStatuses)
        .execute();
      const live = rows.map(sessionFromRow).filter(({ spec }) => spec.training.type !== 'none');
      if (session.spec.training.type !== 'none' && live.length >= maxLive) {
        throw complaint({
          code: 'quota_exceeded',
          field: 'sessions',
          expected: `at most ${maxLive} live sessions`,
          got: `${live.length} (${live.map(({ name }) => name).join(', ')})`,
          remedy: 'stop one of them first',
        });
      }
      await trx
        .insertInto('sessions')
        .values({
          workspace_id: session.workspaceId,
          id: session.id,
          name: session.name,
          status: 'Created' satisfies SessionStatus,
          spec: JSON.stringify(session.spec),
          echo: JSON.stringify(session.echo),
          policy: JSON.stringify(session.policy),
          plan: null,
          group_name: session.groupName,
          error: null,
          last_sequence_number: 0,
          next_sequence_number: 1,
          gradient_incomplete: 0,
          step: 0,
          sampler_version: null,
          trainer: null,
          created_at_ms: now,
          modified_at_ms: now,
          active_at_ms: now,
          ended_at_ms: null,
        })
        .execute();
    });
  }

  /** @throws `unknown_session` */
  async byName(workspaceId: string, name: string): Promise<SessionRecord> {
    const session = await this.find(workspaceId, name);
    if (session === undefined) throw unknownSession(name);
    return session;
  }

  async find(workspaceId: string, name: string): Promise<SessionRecord | undefined> {
    const [row] = (await byName(this.#database, { workspaceId, name })).rows;
    return row === undefined ? undefined : sessionFromRow(row);
  }

  /** @throws `unknown_session` */
  async byId(id: string): Promise<SessionRecord> {
    const row = await this.#database.selectFrom('sessions').selectAll().where('id', '=', id).executeTakeFirst();
    if (row === undefined) throw unknownSession(id);
    return sessionFromRow(row);
  }

  async withStatus(statuses: readonly SessionStatus[]): Promise<SessionRecord[]> {
    const rows = await this.#database
      .selectFrom('sessions')
      .selectAll()
      .where('status', 'in', statuses)
      .orderBy('created_at_ms')
      .execute();
    return rows.map(sessionFromRow);
  }

  /** All of a workspace, oldest first. */
  async ofWorkspace(workspaceId: string): Promise<SessionRecord[]> {
    const query = this.#database.selectFrom('sessions').selectAll().where('workspace_id', '=', workspaceId);
    return (await query.orderBy('created_at_ms').orderBy('id').execute()).map(sessionFromRow);
  }

  /** Newest first; those that the server made for itself are left out. `after` is the `next` of the page before. @throws `invalid_argument` for another `after` */
  async list(
    workspaceId: string,
    filter: SessionFilter,
    { limit, after }: { readonly limit: number; readonly after?: string },
  ): Promise<Page<SessionRecord>> {
    let query = this.#database
      .selectFrom('sessions')
      .selectAll()
      .where('workspace_id', '=', workspaceId)
      .where('name', 'not like', `${servingPrefix}%`);
    const { nameContains, status, createdAfterMs, createdBeforeMs } = filter;
    if (nameContains !== undefined) query = query.where('name', 'like', `%${nameContains.replace(/[%_\\]/g, '')}%`);
    if (status !== undefined) query = query.where('status', '=', status);
    if (createdAfterMs !== undefined) query = query.where('created_at_ms', '>', createdAfterMs);
    if (createdBeforeMs !== undefined) query = query.where('created_at_ms', '<', createdBeforeMs);
    if (after !== undefined) {
      const { atMs, id } = parseCursor(after);
      query = query.where((is) =>
        is.or([is('created_at_ms', '<', atMs), is.and([is('created_at_ms', '=', atMs), is('id', '<', id)])]),
      );
    }
    const rows = await query
      .orderBy('created_at_ms', 'desc')
      .orderBy('id', 'desc')
      .limit(limit + 1)
      .execute();
    const items = rows.slice(0, limit).map(sessionFromRow);
    const last = items.at(-1);
    return rows.length > limit && last !== undefined ? { items, next: `${last.createdAtMs}.${last.id}` } : { items };
  }

  /** Changes the status if it is one of `from`; false when it was another. */
  async change(id: string, { from, to, error, plan }: StatusChange): Promise<boolean> {
    const now = this.#clock.now();
    const changed = await this.#database
      .updateTable('sessions')
      .set({
        status: to,
        modified_at_ms: now,
        ...(error === undefined ? {} : { error: error === null ? null : errorColumn(error) }),
        ...(plan === undefined ? {} : { plan: JSON.stringify(plan) }),
        ...(endedStatuses.includes(to) ? { ended_at_ms: now } : {}),
      })
      .where('id', '=', id)
      .where('status', 'in', from)
      .executeTakeFirst();
    return changed.numUpdatedRows > 0n;
  }

  /** Removes a session and its operations; ledger rows and versions stay. What its operations stored is left to the collector. */
  async remove(id: string): Promise<void> {
    await this.#database.transaction().execute(async (trx) => {
      const rows = await trx
        .selectFrom('operations')
        .select(['workspace_id', 'payload_blob', 'result_blob'])
        .where('session_id', '=', id)
        .execute();
      const blobs = rows.flatMap(({ workspace_id, payload_blob, result_blob }) =>
        [payload_blob, result_blob].filter((blob) => blob !== null).map((blob) => ({ workspace_id, blob })),
      );
      await discardBlobs(trx, blobs);
      await trx.deleteFrom('snapshots').where('session_id', '=', id).execute();
      await trx.deleteFrom('spent_numbers').where('session_id', '=', id).execute();
      await trx.deleteFrom('operations').where('session_id', '=', id).execute();
      await trx.deleteFrom('sessions').where('id', '=', id).execute();
    });
  }
}

function unknownSession(name: string): LoopwrightError {
  return complaint({ code: 'unknown_session', field: 'session', expected: 'the name of a session', got: name });
}

function parseCursor(cursor: string): { atMs: number; id: string } {
  const match = /^(\d{1,16})\.([0-9a-f-]{36})$/.exec(cursor);
  if (match === null) {
    throw complaint({
      field: 'NextToken',
      expected: 'the token of an earlier page',
      got: `${cursor.length} characters`,
    });
  }
  return { atMs: Number(match[1]), id: match[2]! };
}
