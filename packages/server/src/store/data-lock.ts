/**
 * One server per data directory.
 *
 * The lock is SQLite's own exclusive lock on a small file: the operating system drops it when its process ends in any
 * way, so that there is no such thing as a stale lock to clean up. A note beside it says who holds it.
 */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
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
    throw inUse(error, {
      expected: 'a directory that no other server uses',
      got: `${directory}, which another one (${holder(note)}) works on`,
      remedy: 'stop that one, or give this one another data directory',
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

/**
 * Runs `work` while no server has the directory, and keeps servers out meanwhile. Writes nothing; several readers may
 * be at it at once.
 *
 * @throws `data_dir_in_use` naming the process that holds the directory
 */
export async function whileUnused<T>(directory: string, work: () => Promise<T>): Promise<T> {
  const path = join(directory, 'lock.db');
  if (!existsSync(path)) return work(); // a copy of a data directory: no server has ever had it
  const file = new SqliteFile(path);
  try {
    file.exec('BEGIN');
    file.pragma('schema_version'); // takes the shared lock
  } catch (error) {
    file.close();
    throw inUse(error, {
      expected: 'a data directory that no server works on',
      got: `${directory}, which one (${holder(join(directory, 'lock.json'))}) works on`,
      remedy: 'stop it first, or copy the directory once it has stopped',
    });
  }
  try {
    return await work();
  } finally {
    file.exec('COMMIT'); // a close alone waits for statements to be collected
    file.close();
  }
}

function inUse(error: unknown, facts: { expected: string; got: string; remedy: string }): unknown {
  if (!sqliteCode(error)?.startsWith('SQLITE_BUSY')) return error;
  return complaint({ code: 'data_dir_in_use', field: 'dataDir', ...facts, cause: error });
}

function holder(note: string): string {
  try {
    const { pid, since } = JSON.parse(readFileSync(note, 'utf8')) as { pid?: unknown; since?: unknown }; // only printed
    return `process ${String(pid)}, since ${String(since)}`;
  } catch {
    return 'process unknown';
  }
}
