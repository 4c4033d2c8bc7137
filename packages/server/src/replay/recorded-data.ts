/** A data directory, opened to be read: its database as a copy, its blobs where they are. Nothing in it is written. */

import * as nodeFiles from 'node:fs/promises';
import { copyFile, mkdir, mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { complaint } from '@loopwright/protocol';
import { FileBlobStore, type FileOperations } from '../blobs/file-blob-store.js';
import { systemClock } from '../clock.js';
import { OperationLog } from '../operations/operation-log.js';
import { Registry } from '../registry/registry.js';
import type { SessionRecord } from '../sessions/session-record.js';
import { SessionRepository } from '../sessions/session-repository.js';
import { whileUnused } from '../store/data-lock.js';
import { openDatabase } from '../store/open-database.js';
import { defaultWorkspace } from '../workspace.js';

/** In a data directory. */
export const databaseName = 'loopwright.db';
/** Rows that a server had committed when it ended without closing may still be in the second. */
const databaseFiles = [databaseName, `${databaseName}-wal`];

/** A link would change the times of the file that is linked; a copy leaves it alone. */
const copying: FileOperations = {
  ...nodeFiles,
  link: () => Promise.reject(Object.assign(new Error('copied instead'), { code: 'EXDEV' })),
};

export interface RecordedData extends AsyncDisposable {
  readonly dataDir: string;
  /** Oldest first; those that were deleted are gone. */
  readonly sessions: readonly SessionRecord[];
  readonly log: OperationLog;
  readonly registry: Registry;
  readonly blobs: FileBlobStore;
  /** A folder that is removed when this is closed. */
  readonly temporaryDirectory: string;
}

/**
 * Opens a data directory that no server works on. Close it when done.
 *
 * @throws `invalid_argument` for a directory without a log; `data_dir_in_use`
 */
export async function openRecordedData(dataDir: string): Promise<RecordedData> {
  await requireLog(dataDir);
  const temporaryDirectory = await mkdtemp(join(tmpdir(), 'loopwright-replay-'));
  const remove = () => rm(temporaryDirectory, { recursive: true, force: true });
  try {
    await whileUnused(dataDir, () => copyDatabase(dataDir, temporaryDirectory));
    const database = openDatabase(join(temporaryDirectory, databaseName), { durability: 'process-crash' });
    const clock = systemClock;
    const blobs = new FileBlobStore({ root: join(dataDir, 'blobs'), files: copying, durability: 'process-crash' });
    const versions = join(temporaryDirectory, 'versions');
    const close = async () => {
      await database.destroy();
      await remove();
    };
    try {
      const sessions = await new SessionRepository(database, clock).ofWorkspace(defaultWorkspace);
      return {
        dataDir,
        sessions,
        log: new OperationLog({ database, blobs, clock }),
        registry: new Registry({ database, blobs, clock, directory: versions }),
        blobs,
        temporaryDirectory,
        [Symbol.asyncDispose]: close,
      };
    } catch (error) {
      await database.destroy();
      throw error;
    }
  } catch (error) {
    await remove();
    throw error;
  }
}

/** The session of that name or, without one, the only one. @throws `unknown_session`, `invalid_argument` */
export function sessionOf({ sessions, dataDir }: RecordedData, name?: string): SessionRecord {
  const found = name === undefined ? sessions : sessions.filter((session) => session.name === name);
  if (found.length === 1) return found[0]!;
  const names = sessions.map((session) => session.name);
  const list = names.length === 0 ? 'no session' : `${names.slice(-20).join(', ')}${names.length > 20 ? ', …' : ''}`;
  throw complaint({
    code: name === undefined ? 'invalid_argument' : 'unknown_session',
    field: 'session',
    expected: name === undefined ? `one session in ${dataDir}` : `a session of ${dataDir}`,
    got: name === undefined ? `${names.length}` : name.slice(0, 100),
    remedy: `name one of those there: ${list}`,
  });
}

async function requireLog(dataDir: string): Promise<void> {
  const found = await stat(join(dataDir, databaseName)).catch(() => undefined); // not there: told below
  if (found?.isFile() === true) return;
  throw complaint({
    field: 'data directory',
    expected: `a directory in which a server kept its log (${databaseName})`,
    got: `${dataDir}, which has none`,
    remedy: 'name the data directory of connect() or serve, such as ~/.loopwright/data',
  });
}

/** Copies a database that nobody writes meanwhile. */
export async function copyDatabase(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  for (const name of databaseFiles) {
    await copyFile(join(from, name), join(to, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error;
    });
  }
}
