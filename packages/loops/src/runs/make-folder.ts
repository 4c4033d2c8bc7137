/** A folder with all that is above it. Node's own recursive `mkdir` never ends where a file system answers ENOENT below a folder that is there, as /proc does. */
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { systemCode } from './write-error.js';

/** One that is there is fine. @throws the errors of the system */
export async function makeFolder(path: string): Promise<void> {
  try {
    await makeOne(path);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error;
    await makeFolder(dirname(path));
    await makeOne(path);
  }
}

async function makeOne(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    if (!(await isFolder(path))) throw error;
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}
