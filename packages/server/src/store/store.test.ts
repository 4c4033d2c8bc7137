import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { lockDataDirectory } from './data-lock.js';
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
      .values({ workspace_id: 'w', name: 'g', description: '', next_number: 1, created_at_ms: 5 })
      .execute();
    await first.destroy();
    const second = openDatabase(path);
    const rows = await second.selectFrom('model_package_groups').selectAll().execute();
    await second.destroy();
    expect(rows).toEqual([{ workspace_id: 'w', name: 'g', description: '', next_number: 1, created_at_ms: 5 }]);
  });

  it('rolls a failed transaction back', async () => {
    const database = openDatabase(join(directory(), 'a.db'));
    const group = { workspace_id: 'w', name: 'g', description: '', next_number: 1, created_at_ms: 5 };
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
    expect(() => openDatabase(path)).toThrow(`schema ${schemaVersion + 1}, this release knows ${schemaVersion}`);
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
