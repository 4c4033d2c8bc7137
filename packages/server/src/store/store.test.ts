import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lockDataDirectory, whileUnused } from './data-lock.js';
import { SqliteFile } from './libsql-driver.js';
import { schemaVersion } from './migrations.js';
import { openDatabase } from './open-database.js';

const directory = () => mkdtempSync(join(tmpdir(), 'loopwright-store-'));

describe('openDatabase', () => {
  it('creates the schema once and finds its rows again', async () => {
    const path = join(directory(), 'a.db');
    const first = openDatabase(path);
    await first
      .insertInto('model_package_groups')
      .values({ workspace_id: 'w', name: 'g', description: '', next_number: 1, created_at_ms: 5, tags: '{}' })
      .execute();
    await first.destroy();
    const second = openDatabase(path);
    const rows = await second.selectFrom('model_package_groups').selectAll().execute();
    await second.destroy();
    expect(rows).toEqual([
      { workspace_id: 'w', name: 'g', description: '', next_number: 1, created_at_ms: 5, tags: '{}' },
    ]);
  });

  it('rolls a failed transaction back', async () => {
    const database = openDatabase(join(directory(), 'a.db'));
    const group = { workspace_id: 'w', name: 'g', description: '', next_number: 1, created_at_ms: 5, tags: '{}' };
    const failing = database.transaction().execute(async (trx) => {
      await trx.insertInto('model_package_groups').values(group).execute();
      await trx.insertInto('model_package_groups').values(group).execute();
    });
    await expect(failing).rejects.toMatchObject({ code: 'internal' });
    expect(await database.selectFrom('model_package_groups').selectAll().execute()).toEqual([]);
    await database.destroy();
  });

  it('refuses a file of a newer release, naming both versions', () => {
    const path = join(directory(), 'a.db');
    const file = new SqliteFile(path);
    file.exec(`PRAGMA user_version = ${schemaVersion + 1}`);
    file.close();
    expect(() => openDatabase(path)).toThrow(`schema ${schemaVersion} or older, got schema ${schemaVersion + 1}`);
  });

  it('waits while another program has the database locked, and lets the process do other things meanwhile', async () => {
    const path = join(directory(), 'a.db');
    const database = openDatabase(path);
    const other = new SqliteFile(path);
    other.exec('BEGIN IMMEDIATE');
    const group = { workspace_id: 'w', name: 'g', description: '', next_number: 1, created_at_ms: 5, tags: '{}' };
    let written = false;
    const statement = database.insertInto('model_package_groups').values(group).execute();
    const transaction = database.transaction().execute(async (trx) => {
      const { description } = await trx.selectFrom('model_package_groups').selectAll().executeTakeFirstOrThrow();
      await trx
        .updateTable('model_package_groups')
        .set({ description: `${description}!` })
        .execute();
      written = true;
    });
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setTimeout(resolve, 5));
    expect(written).toBe(false);
    other.exec(
      "INSERT INTO model_package_groups (workspace_id, name, description, next_number, created_at_ms) VALUES ('w', 'other', 'x', 1, 5); COMMIT",
    );
    await Promise.all([statement, transaction]);
    expect(await database.selectFrom('model_package_groups').select('description').execute()).toEqual([
      { description: 'x!' },
      { description: 'x!' },
    ]);
    other.close();
    await database.destroy();
  });

  it('gives up on a database that stays locked, naming what to do, and works again afterwards', async () => {
    const path = join(directory(), 'a.db');
    const database = openDatabase(path, { busyMs: 60 });
    const other = new SqliteFile(path);
    other.exec('BEGIN IMMEDIATE');
    const group = { workspace_id: 'w', name: 'g', description: '', next_number: 1, created_at_ms: 5, tags: '{}' };
    const insert = (trx: Pick<typeof database, 'insertInto'>) =>
      trx.insertInto('model_package_groups').values(group).execute();
    await expect(insert(database)).rejects.toMatchObject({ code: 'limit_exceeded', details: { field: 'dataDir' } });
    await expect(database.transaction().execute(insert)).rejects.toMatchObject({ code: 'limit_exceeded' });
    other.exec('COMMIT');
    await database.transaction().execute(insert);
    other.close();
    await database.destroy();
  });

  it('is whole in its one file once it is closed', async () => {
    const path = join(directory(), 'a.db');
    const database = openDatabase(path);
    const group = { workspace_id: 'w', name: 'g', description: '', next_number: 1, created_at_ms: 5, tags: '{}' };
    await database.insertInto('model_package_groups').values(group).execute();
    await database.destroy();
    const copy = join(directory(), 'copy.db');
    copyFileSync(path, copy);
    const other = openDatabase(copy);
    expect(await other.selectFrom('model_package_groups').selectAll().execute()).toEqual([group]);
    await other.destroy();
  });

  it('puts every commit on the disk', async () => {
    const path = join(directory(), 'a.db');
    const database = openDatabase(path);
    const file = new SqliteFile(path);
    expect(file.pragma('journal_mode')).toBe('wal');
    file.close();
    await database.destroy();
  });
});

describe('whileUnused', () => {
  it('lets several read at once and keeps servers out meanwhile, and is refused while one has the directory', async () => {
    const path = directory();
    lockDataDirectory(path).release();
    await whileUnused(path, async () => {
      expect(await whileUnused(path, async () => 'read')).toBe('read');
      expect(() => lockDataDirectory(path)).toThrow('a directory that no other server uses');
    });
    const lock = lockDataDirectory(path);
    await expect(whileUnused(path, async () => 'read')).rejects.toMatchObject({ code: 'data_dir_in_use' });
    lock.release();
  });
});

describe('lockDataDirectory', () => {
  it('refuses a second server and says who holds the directory', () => {
    const path = directory();
    const lock = lockDataDirectory(path);
    expect(() => lockDataDirectory(path)).toThrow(`process ${process.pid}`);
    lock.release();
    lockDataDirectory(path).release();
  });

  it('takes over from a process that was killed', async () => {
    const path = directory();
    const script = `const D = require('libsql'); const d = new D(${JSON.stringify(join(path, 'lock.db'))}, {});
      d.exec('BEGIN EXCLUSIVE'); process.stdout.write('locked'); setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['-e', script], {
      cwd: import.meta.dirname,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    expect(() => lockDataDirectory(path)).toThrow('which another one (process');
    child.kill('SIGKILL');
    await once(child, 'exit');
    lockDataDirectory(path).release();
  });
});
