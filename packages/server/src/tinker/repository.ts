/** Queries on what only this wire knows: its sessions, its samplers, and the names of what its clients saved. */
import type { SaveKind, SavePath } from '@loopwright/wires/tinker';
import type { Selectable } from 'kysely';
import { liveStatuses } from '../sessions/session-record.js';
import type { Database } from '../store/open-database.js';
import type { TinkerSamplersTable, TinkerSavesTable, TinkerSessionsTable } from '../store/tables.js';

/** What is saved for a sampler alone is described so; named saves as `weights/NAME` or `sampler_weights/NAME`. */
export const unnamedDescription = 'sampler';

export type TinkerSessionRow = Selectable<TinkerSessionsTable>;
export type SamplerRow = Selectable<TinkerSamplersTable>;
export type SaveRow = Selectable<TinkerSavesTable>;

/** A part of a listing, newest first. */
export interface Part {
  readonly limit: number;
  readonly offset: number;
}

export class TinkerRepository {
  readonly #database: Database;
  readonly #workspaceId: string;

  constructor(database: Database, workspaceId: string) {
    this.#database = database;
    this.#workspaceId = workspaceId;
  }

  async addSession(session: { readonly id: string; readonly facts: object; readonly atMs: number }): Promise<void> {
    const { id, facts, atMs } = session;
    const row = { id, facts: JSON.stringify(facts), created_at_ms: atMs, heartbeat_at_ms: atMs, finish: null };
    await this.#database
      .insertInto('tinker_sessions')
      .values({ workspace_id: this.#workspaceId, ...row })
      .execute();
  }

  async session(id: string): Promise<TinkerSessionRow | undefined> {
    return this.#sessions().where('id', '=', id).executeTakeFirst();
  }

  async sessions({ limit, offset }: Part): Promise<TinkerSessionRow[]> {
    return this.#sessions().orderBy('created_at_ms', 'desc').orderBy('id').limit(limit).offset(offset).execute();
  }

  /** Sessions that live, whose clients were last heard of before `beforeMs`; the quietest first. */
  async quietSessions(beforeMs: number): Promise<TinkerSessionRow[]> {
    return this.#sessions()
      .where('finish', 'is', null)
      .where('heartbeat_at_ms', '<', beforeMs)
      .orderBy('heartbeat_at_ms')
      .execute();
  }

  /** Sessions that were marked as ended, but have models that live. */
  async halfEnded(): Promise<string[]> {
    const rows = await this.#database
      .selectFrom('sessions as models')
      .innerJoin('tinker_sessions as ended', (on) =>
        on.on('models.name', 'like', (eb) => eb(eb.ref('ended.id'), '||', eb.val('-%'))),
      )
      .select('ended.id')
      .distinct()
      .where('ended.workspace_id', '=', this.#workspaceId)
      .where('models.workspace_id', '=', this.#workspaceId)
      .where('models.status', 'in', liveStatuses)
      .where('models.echo', 'like', '{"wire":"tinker"%')
      .where('ended.finish', 'is not', null)
      .execute();
    return rows.map(({ id }) => id);
  }

  /** Weights without a name whose session has ended: what was left when the server died at its end. */
  async unnamedLeft(nowMs: number): Promise<{ readonly session: string; readonly version: string }[]> {
    return this.#database
      .selectFrom('versions')
      .innerJoin('tinker_sessions as ended', (on) =>
        on.on('ended.id', '=', (eb) => eb.fn('substr', ['versions.session_name', eb.val(1), eb.val(36)])),
      )
      .select(['ended.id as session', 'versions.id as version'])
      .where('versions.workspace_id', '=', this.#workspaceId)
      .where('versions.description', '=', unnamedDescription)
      .where('versions.session_name', 'like', '%-train-%')
      .where('versions.deleted_at_ms', 'is', null)
      .where((is) => is.or([is('versions.expires_at_ms', 'is', null), is('versions.expires_at_ms', '>', nowMs)]))
      .where('ended.workspace_id', '=', this.#workspaceId)
      .where('ended.finish', 'is not', null)
      .execute();
  }

  #sessions() {
    return this.#database.selectFrom('tinker_sessions').selectAll().where('workspace_id', '=', this.#workspaceId);
  }

  async changeSession(
    id: string,
    change: { readonly heartbeatAtMs?: number; readonly facts?: object; readonly finish?: object },
  ): Promise<void> {
    const { heartbeatAtMs, facts, finish } = change;
    await this.#database
      .updateTable('tinker_sessions')
      .set({
        ...(heartbeatAtMs === undefined ? {} : { heartbeat_at_ms: heartbeatAtMs }),
        ...(facts === undefined ? {} : { facts: JSON.stringify(facts) }),
        ...(finish === undefined ? {} : { finish: JSON.stringify(finish) }),
      })
      .where('id', '=', id)
      .execute();
  }

  /** Adds a sampler, or finds the one of its number or operation. */
  async addSampler(sampler: Omit<SamplerRow, 'workspace_id' | 'clones'>): Promise<SamplerRow> {
    const row = { workspace_id: this.#workspaceId, clones: 0, ...sampler };
    return this.#database.transaction().execute(async (trx) => {
      const earlier = await trx
        .selectFrom('tinker_samplers')
        .selectAll()
        .where((is) =>
          sampler.operation_id === null
            ? is.and([is('session_id', '=', sampler.session_id), is('number', '=', sampler.number)])
            : is('operation_id', '=', sampler.operation_id),
        )
        .executeTakeFirst();
      if (earlier !== undefined) return earlier;
      await trx.insertInto('tinker_samplers').values(row).execute();
      return row;
    });
  }

  async sampler(id: string): Promise<SamplerRow | undefined> {
    return this.#samplers().where('id', '=', id).executeTakeFirst();
  }

  async samplersOf(sessionId: string): Promise<SamplerRow[]> {
    return this.#samplers().where('session_id', '=', sessionId).orderBy('created_at_ms').execute();
  }

  async samplerOfOperation(operationId: string): Promise<SamplerRow | undefined> {
    return this.#samplers().where('operation_id', '=', operationId).executeTakeFirst();
  }

  #samplers() {
    return this.#database.selectFrom('tinker_samplers').selectAll().where('workspace_id', '=', this.#workspaceId);
  }

  /** The number of one more copy of a client, from 1. */
  async countClone(id: string): Promise<number | undefined> {
    const row = await this.#database
      .updateTable('tinker_samplers')
      .set(({ eb }) => ({ clones: eb('clones', '+', 1) }))
      .where('workspace_id', '=', this.#workspaceId)
      .where('id', '=', id)
      .returning('clones')
      .executeTakeFirst();
    return row?.clones;
  }

  /** Once for an operation. */
  async addSave(save: Omit<SaveRow, 'workspace_id' | 'is_public'>): Promise<void> {
    await this.#database
      .insertInto('tinker_saves')
      .values({ workspace_id: this.#workspaceId, is_public: 0, ...save })
      .onConflict((on) => on.doNothing())
      .execute();
  }

  async saveOfOperation(operationId: string): Promise<SaveRow | undefined> {
    return this.#saves().where('operation_id', '=', operationId).executeTakeFirst();
  }

  /** What was saved under a name, newest first: more than one where a save went over another. */
  async savesAt({ modelId, kind, name }: SavePath): Promise<SaveRow[]> {
    return this.#saves()
      .where('model_id', '=', modelId)
      .where('kind', '=', kind)
      .where('name', '=', name)
      .orderBy('created_at_ms', 'desc')
      .orderBy('operation_id')
      .execute();
  }

  #saves() {
    return this.#database.selectFrom('tinker_saves').selectAll().where('workspace_id', '=', this.#workspaceId);
  }

  async publish(operationId: string, isPublic: boolean): Promise<void> {
    await this.#database
      .updateTable('tinker_saves')
      .set({ is_public: isPublic ? 1 : 0 })
      .where('operation_id', '=', operationId)
      .execute();
  }

  /** The names of the sessions that are models of this wire, newest first, and how many there are. */
  async models({ limit, offset }: Part): Promise<{ readonly names: readonly string[]; readonly total: number }> {
    const models = this.#database
      .selectFrom('sessions')
      .where('workspace_id', '=', this.#workspaceId)
      .where('echo', 'like', '{"wire":"tinker"%')
      .where('name', 'like', '%-train-%');
    const [rows, count] = await Promise.all([
      models.select('name').orderBy('created_at_ms', 'desc').orderBy('id').limit(limit).offset(offset).execute(),
      models.select(({ fn }) => fn.countAll<number>().as('total')).executeTakeFirstOrThrow(),
    ]);
    return { names: rows.map(({ name }) => name), total: Number(count.total) };
  }

  /** The names of the sessions behind the models and samplers of a session of this wire. */
  async namesOf(sessionId: string): Promise<string[]> {
    const rows = await this.#database
      .selectFrom('sessions')
      .select('name')
      .where('workspace_id', '=', this.#workspaceId)
      .where('echo', 'like', '{"wire":"tinker"%')
      .where('name', 'like', `${sessionId}-%`)
      .orderBy('created_at_ms')
      .execute();
    return rows.map(({ name }) => name);
  }
}

export function pathOf({ model_id, kind, name }: SaveRow): SavePath {
  return { modelId: model_id, kind: kind as SaveKind, name }; // true: only this wire writes the column, from that type
}
