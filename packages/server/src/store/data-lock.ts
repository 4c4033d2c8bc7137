/**
 * One server per data directory.
 *
 * The lock is SQLite's own exclusive lock on a small file: the operating system drops it when its process ends in any
 * way, so that there is no such thing as a stale lock to clean up. A note beside it says who holds it.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { complaint } from '@loopwright/protocol';
import { SqliteFile, sqliteCode } from './libsql-driver.js';

export interface DataLock {
  /** Releasing twice is harmless. */
  release(): void;
}

/** @throws `data_dir_in_use` naming the process that holds the directory */
export function lockDataDirectory(directory: string): DataLock {
  const file = new SqliteFile(join(directory, 'lock.db'));
  const note = join(directory, 'lock.json');
  try {
    file.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    file.close();
    if (sqliteCode(error) === undefined || !sqliteCode(error)?.startsWith('SQLITE_BUSY')) throw error;
    throw complaint({
      code: 'data_dir_in_use',
      field: 'dataDir',
      expected: 'a directory that no other server uses',
      got: `${directory}, which another one (${holder(note)}) works on`,
      remedy: 'stop that one, or give this one another data directory',
      cause: error,
    });
  }
  writeFileSync(note, JSON.stringify({ pid: process.pid, since: new Date().toISOString() }));
  let held = true;
  return {
    release: () => {
      if (!held) return;
      held = false;
      rmSync(note, { force: true });
      file.close();
    },
  };
}

function holder(note: string): string {
  try {
    const { pid, since } = JSON.parse(readFileSync(note, 'utf8')) as { pid?: unknown; since?: unknown }; // only printed
    return `process ${String(pid)}, since ${String(since)}`;
  } catch {
    return 'process unknown';
  }
}
