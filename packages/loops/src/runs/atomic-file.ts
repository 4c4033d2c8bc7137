/** A small file that is there whole or not at all. */
import { randomBytes } from 'node:crypto';
import { open, rename, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { asWriteError } from './write-error.js';

/**
 * Writes the text beside its place, syncs it, and renames it into place: a reader, also after a crash, finds the old file or the new one.
 *
 * @throws `disk_full`; `internal` for other system errors; the older file is untouched then
 */
export async function writeTextAtomically(path: string, text: string): Promise<void> {
  const temporary = `${path}.${process.pid}-${randomBytes(6).toString('hex')}.tmp`;
  try {
    const file = await open(temporary, 'wx');
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await unlink(temporary).catch(() => undefined);
    throw asWriteError(error, path);
  }
  await syncFolder(dirname(path));
}

/** Makes a rename last. Windows can't open folders, and doesn't need it. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r').catch(() => undefined);
  if (folder === undefined) return;
  try {
    await folder.sync();
  } catch {
    // Some file systems refuse it; the file itself is synced.
  } finally {
    await folder.close();
  }
}
