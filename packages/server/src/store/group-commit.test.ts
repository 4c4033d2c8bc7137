import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { GroupCommit } from './group-commit.js';
import { type Database, openDatabase } from './open-database.js';

async function refusals(work: readonly Promise<unknown>[]): Promise<unknown[]> {
  return (await Promise.allSettled(work)).map((end) => (end.status === 'rejected' ? end.reason : 'no refusal'));
}

describe('GroupCommit', () => {
  let database: Database;
  let commits: GroupCommit;
  beforeEach(() => {
    database = openDatabase(join(mkdtempSync(join(tmpdir(), 'loopwright-commit-')), 'a.db'));
    commits = new GroupCommit(database);
  });
  afterEach(() => database.destroy());

  const insert = (name: string) => (trx: Parameters<Parameters<GroupCommit['run']>[0]>[0]) =>
    trx
      .insertInto('model_package_groups')
      .values({ workspace_id: 'w', name, description: '', next_number: 1, created_at_ms: 0, tags: '{}' })
      .execute();
  const names = async () =>
    (await database.selectFrom('model_package_groups').select('name').orderBy('name').execute()).map(
      ({ name }) => name,
    );

  it('gives each caller its own result', async () => {
    expect(await Promise.all([1, 2, 3].map((n) => commits.run(async () => n * 2)))).toEqual([2, 4, 6]);
  });

  it('undoes what failed, whole, and keeps its neighbours', async () => {
    const results = await Promise.allSettled([
      commits.run(insert('a')),
      commits.run(async (trx) => {
        await insert('b')(trx);
        throw new Error('second thoughts');
      }),
      commits.run(async (trx) => {
        await insert('c')(trx);
        await insert('a')(trx);
      }),
      commits.run(insert('d')),
    ]);
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled']);
    expect(await names()).toEqual(['a', 'd']);
  });

  it('shows a later job what an earlier one of the same commit wrote', async () => {
    const [, seen] = await Promise.all([
      commits.run(insert('a')),
      commits.run((trx) => trx.selectFrom('model_package_groups').select('name').execute()),
    ]);
    expect(seen).toEqual([{ name: 'a' }]);
  });

  it('takes jobs that come while it commits', async () => {
    const inner = commits.run(insert('a')).then(() => commits.run(insert('b')));
    await Promise.all([inner, ...Array.from({ length: 100 }, (_, n) => commits.run(insert(`x${n}`)))]);
    expect(await names()).toHaveLength(102);
  });

  it('says that the disk is full, keeps nothing of that commit, and goes on once there is room', async () => {
    await commits.run(insert('a'));
    const grow = (name: string) => (trx: Parameters<Parameters<GroupCommit['run']>[0]>[0]) =>
      trx
        .insertInto('model_package_groups')
        .values({
          workspace_id: 'w',
          name,
          description: 'x'.repeat(100_000),
          next_number: 1,
          created_at_ms: 0,
          tags: '{}',
        })
        .execute();
    await sql`PRAGMA max_page_count = 1`.execute(database); // as many as it has
    for (const error of await refusals([commits.run(grow('b')), database.transaction().execute(grow('c'))])) {
      expect(error).toMatchObject({ code: 'disk_full', details: { got: 'SQLITE_FULL' } });
    }
    await sql`PRAGMA max_page_count = 1000000`.execute(database);
    await commits.run(grow('d'));
    expect(await names()).toEqual(['a', 'd']);
  });

  it('rejects every job of a commit that fails, and goes on afterwards', async () => {
    const failing = commits.run(async (trx) => {
      await sql`PRAGMA defer_foreign_keys = ON`.execute(trx);
      await trx
        .insertInto('spent_numbers')
        .values({ workspace_id: 'w', session_id: 'none', sequence_number: 1 })
        .execute();
    });
    const results = await Promise.allSettled([commits.run(insert('a')), failing]);
    expect(results.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await commits.run(insert('b'));
    expect(await names()).toEqual(['b']);
  });
});
