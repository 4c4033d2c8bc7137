import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { SlowDisk } from '../testing/slow-disk.js';
import { GroupCommit } from './group-commit.js';
import { type Database, openDatabase } from './open-database.js';

const group = (name: string) => ({
  workspace_id: 'w',
  name,
  description: '',
  next_number: 1,
  created_at_ms: 0,
  tags: '{}',
});
const add = (database: Pick<Database, 'insertInto'>, name: string) =>
  database.insertInto('model_package_groups').values(group(name)).execute();

describe('a write of the database', () => {
  const open: Database[] = [];
  const opened = (disk: SlowDisk): Database => {
    const path = join(mkdtempSync(join(tmpdir(), 'loopwright-wal-')), 'a.db');
    const database = openDatabase(path, { sync: disk.sync });
    open.push(database);
    return database;
  };
  afterEach(() => Promise.all(open.splice(0).map((database) => database.destroy())));

  it('has returned when its log has been synced, in a transaction and outside of one', async () => {
    const disk = new SlowDisk();
    const database = opened(disk);
    for (const write of [
      () => add(database, 'alone'),
      () => database.transaction().execute((trx) => add(trx, 'together')),
      () => new GroupCommit(database).run((trx) => add(trx, 'grouped')),
    ]) {
      disk.hold();
      let returned = false;
      const writing = write().then(() => {
        returned = true;
      });
      await disk.asked();
      expect(returned).toBe(false);
      disk.release();
      await writing;
    }
  });

  it('syncs the real file', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'loopwright-wal-')), 'a.db');
    const database = openDatabase(path);
    await add(database, 'a');
    await database.destroy();
    const again = openDatabase(path);
    open.push(again);
    expect(await again.selectFrom('model_package_groups').select('name').execute()).toEqual([{ name: 'a' }]);
  });

  it('lets reads go without a sync', async () => {
    const disk = new SlowDisk();
    const database = opened(disk);
    await add(database, 'a');
    const before = disk.syncs;
    await database.selectFrom('model_package_groups').selectAll().execute();
    await database.durable();
    expect(disk.syncs).toBe(before);
  });

  it('waits for a sync that began after it, and shares that with its neighbours', async () => {
    const disk = new SlowDisk();
    const database = opened(disk);
    const commits = new GroupCommit(database);
    disk.hold();
    const first = commits.run((trx) => add(trx, 'first'));
    await disk.asked();
    const before = disk.syncs;
    let second = false;
    await commits.commit((trx) => add(trx, 'second'));
    await commits.commit((trx) => add(trx, 'third'));
    const both = Promise.all([database.durable(), database.durable()]).then(() => {
      second = true;
    });
    disk.release();
    await first;
    expect(second).toBe(false);
    await both;
    expect(disk.syncs).toBe(before + 1);
  });

  it('that the disk does not confirm is refused, and so is everything after it', async () => {
    const disk = new SlowDisk();
    const database = opened(disk);
    disk.fail('EIO');
    await expect(add(database, 'a')).rejects.toMatchObject({
      code: 'internal',
      message: expect.stringContaining('(EIO); restart the server'),
    });
    disk.mend();
    const later = [
      () => add(database, 'b'),
      () => database.transaction().execute((trx) => add(trx, 'c')),
      () => new GroupCommit(database).run((trx) => add(trx, 'd')),
      () => database.durable(),
    ];
    for (const write of later) await expect(write()).rejects.toMatchObject({ code: 'internal' });
    const names = await database.selectFrom('model_package_groups').select('name').execute();
    expect(names).toEqual([{ name: 'a' }]); // what came later was not even written
  });

  it('that finds no room when it is synced says so', async () => {
    const disk = new SlowDisk();
    const database = opened(disk);
    disk.fail('ENOSPC');
    await expect(add(database, 'a')).rejects.toMatchObject({ code: 'disk_full', details: { got: 'ENOSPC' } });
  });
});
