/** Groups of versions: made on first use or by name, described and tagged. */
import { complaint, type VersionGroup } from '@loopwright/protocol';
import type { Transaction } from 'kysely';
import type { Clock } from '../clock.js';
import type { Database } from '../store/open-database.js';
import type { Tables } from '../store/tables.js';
import { changedTags, type TagChange } from './tags.js';

export interface NewGroup {
  readonly name: string;
  readonly description?: string;
  readonly tags?: Readonly<Record<string, string>>;
}

export class Groups {
  readonly #database: Database;
  readonly #clock: Clock;

  constructor({ database, clock }: { readonly database: Database; readonly clock: Clock }) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Makes a group. False when it exists already. */
  async create(
    workspaceId: string,
    { name, description = '', tags = {} }: NewGroup,
    database: Database | Transaction<Tables> = this.#database,
  ): Promise<boolean> {
    const made = await database
      .insertInto('model_package_groups')
      .values({
        workspace_id: workspaceId,
        name,
        description,
        next_number: 1,
        created_at_ms: this.#clock.now(),
        tags: JSON.stringify(tags),
      })
      .onConflict((on) => on.doNothing())
      .executeTakeFirst();
    return (made.numInsertedOrUpdatedRows ?? 0n) > 0n;
  }

  /** @throws `not_found` */
  async get(workspaceId: string, name: string): Promise<VersionGroup> {
    const [group] = await this.#select(workspaceId, name);
    if (group === undefined) throw unknownGroup(name);
    return group;
  }

  /** By name. */
  list(workspaceId: string): Promise<VersionGroup[]> {
    return this.#select(workspaceId);
  }

  /** @throws `not_found`; `invalid_argument` for too many tags */
  async change(
    workspaceId: string,
    name: string,
    { description, tags }: { readonly description?: string; readonly tags?: TagChange },
  ): Promise<VersionGroup> {
    await this.#database.transaction().execute(async (trx) => {
      const row = await trx
        .selectFrom('model_package_groups')
        .select('tags')
        .where('workspace_id', '=', workspaceId)
        .where('name', '=', name)
        .executeTakeFirst();
      if (row === undefined) throw unknownGroup(name);
      const set = {
        ...(description === undefined ? {} : { description }),
        ...(tags === undefined ? {} : { tags: JSON.stringify(changedTags(JSON.parse(row.tags), tags)) }),
      };
      if (Object.keys(set).length === 0) return;
      await trx
        .updateTable('model_package_groups')
        .set(set)
        .where('workspace_id', '=', workspaceId)
        .where('name', '=', name)
        .execute();
    });
    return this.get(workspaceId, name);
  }

  /** By name, with their counts of versions. */
  async #select(workspaceId: string, name?: string): Promise<VersionGroup[]> {
    const now = this.#clock.now();
    let query = this.#database
      .selectFrom('model_package_groups as groups')
      .leftJoin('versions', (join) =>
        join
          .onRef('versions.workspace_id', '=', 'groups.workspace_id')
          .onRef('versions.group_name', '=', 'groups.name')
          .on('versions.deleted_at_ms', 'is', null)
          .on((is) => is.or([is('versions.expires_at_ms', 'is', null), is('versions.expires_at_ms', '>', now)])),
      )
      .select(({ fn }) => [
        'groups.name',
        'groups.description',
        'groups.tags',
        'groups.created_at_ms',
        fn.count<number>('versions.id').as('versions'),
        fn.max<number | null>('versions.number').as('latest'),
      ])
      .where('groups.workspace_id', '=', workspaceId)
      .groupBy('groups.name')
      .orderBy('groups.name');
    if (name !== undefined) query = query.where('groups.name', '=', name);
    return (await query.execute()).map((row) => ({
      name: row.name,
      description: row.description,
      tags: JSON.parse(row.tags),
      createdAtMs: row.created_at_ms,
      versions: row.versions,
      latest: row.latest,
    }));
  }
}

function unknownGroup(name: string) {
  return complaint({
    code: 'not_found',
    field: 'group',
    expected: 'an existing model package group',
    got: name.slice(0, 200),
  });
}
