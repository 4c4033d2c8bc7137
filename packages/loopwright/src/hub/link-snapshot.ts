/** The folder of a commit: each file a link to its blob, and the ref that names the commit. */
import { randomBytes } from 'node:crypto';
import { copyFile, link, mkdir, rename, rm, stat, symlink } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { writeFileAtomically } from '@loopwright/engine';
import type { RepositoryFile } from './hub-client.js';

export interface SnapshotToLink {
  /** The folder of the repository. */
  readonly repository: string;
  readonly directory: string;
  readonly files: readonly RepositoryFile[];
}

/** Links what isn't there yet. Paths must not lead out of the directory. */
export async function linkSnapshot({ repository, directory, files }: SnapshotToLink): Promise<void> {
  await mkdir(directory, { recursive: true });
  for (const file of files) {
    if (await isLinked(directory, file)) continue;
    const path = join(directory, file.path);
    await mkdir(dirname(path), { recursive: true });
    const temporary = temporaryName(path);
    await linkOrCopy(join(repository, 'blobs', file.hash.hex), temporary);
    await rename(temporary, path);
  }
}

/** Whether a file of a snapshot is there with the stated size. */
export async function isLinked(directory: string, { path, sizeBytes }: RepositoryFile): Promise<boolean> {
  return (await stat(join(directory, path)).catch(() => undefined))?.size === sizeBytes;
}

/** Makes a branch or tag mean a commit. */
export async function writeRef(
  repository: string,
  { revision, commit }: { readonly revision: string; readonly commit: string },
): Promise<void> {
  const path = join(repository, 'refs', revision);
  await mkdir(dirname(path), { recursive: true });
  await writeFileAtomically(path, (append) => append(new TextEncoder().encode(commit)));
}

/** Relative, so that the cache can be moved; Windows allows such links only to some, and gets the file itself. */
async function linkOrCopy(blob: string, path: string): Promise<void> {
  try {
    await symlink(relative(dirname(path), blob), path);
  } catch {
    await rm(path, { force: true });
    await link(blob, path).catch(() => copyFile(blob, path));
  }
}

function temporaryName(path: string): string {
  return `${path}.${process.pid}-${randomBytes(6).toString('hex')}.tmp`;
}
