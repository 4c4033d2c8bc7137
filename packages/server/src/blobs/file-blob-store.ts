/** Blobs as files `root/workspace/ab/abcdef…`: written beside, synced, renamed; so that a half-written one is never visible. */
import { createHash, randomUUID } from 'node:crypto';
import * as nodeSyncFiles from 'node:fs';
import * as nodeFiles from 'node:fs/promises';
import { dirname, isAbsolute, join, normalize, relative, sep } from 'node:path';
import type { Readable } from 'node:stream';
import { complaint, diskFull, isNoSpace, LoopwrightError } from '@loopwright/protocol';
import type { Durability } from '../durability.js';
import type { BlobRef, BlobStore, Manifest, ManifestEntry } from './blob-store.js';
import { damagedBlob } from './damaged-blob.js';
import { RecentBytes } from './recent-bytes.js';
import { VerifiedFiles } from './verified-files.js';

/** The file operations in use; tests hand in failing ones. */
export type FileOperations = Pick<
  typeof nodeFiles,
  'chmod' | 'copyFile' | 'link' | 'mkdir' | 'open' | 'opendir' | 'readFile' | 'rename' | 'rm' | 'stat' | 'utimes'
>;

export type SmallFileOperations = Pick<typeof nodeSyncFiles, 'renameSync' | 'writeFileSync'>;

/** Blobs up to this are written on the spot where nothing is synced. */
const smallBytes = 64 * 1024;

export interface FileBlobStoreOptions {
  readonly root: string;
  readonly files?: FileOperations;
  /** A blob younger than this is not deleted: its row may be about to be written. 10 minutes by default. */
  readonly graceMs?: number;
  /** For small blobs that need no sync; tests hand in failing ones. */
  readonly smallFiles?: SmallFileOperations;
  /** What must survive; see ServerOptions. `power-loss` by default. */
  readonly durability?: Durability;
}

export class FileBlobStore implements BlobStore {
  readonly #root: string;
  readonly #files: FileOperations;
  readonly #graceMs: number;
  readonly #syncs: boolean;
  readonly #smallFiles: SmallFileOperations;
  readonly #made = new Set<string>();
  readonly #recent = new RecentBytes();
  readonly #verified = new VerifiedFiles();

  constructor({
    root,
    files = nodeFiles,
    smallFiles = nodeSyncFiles,
    graceMs = 600_000,
    durability = 'power-loss',
  }: FileBlobStoreOptions) {
    this.#smallFiles = smallFiles;
    this.#syncs = durability === 'power-loss';
    this.#root = root;
    this.#files = files;
    this.#graceMs = graceMs;
  }

  async put(workspaceId: string, bytes: Uint8Array): Promise<string> {
    const hash = createHash('sha256').update(bytes).digest('hex');
    const path = this.#path({ workspaceId, hash });
    this.#recent.add(path, bytes);
    // Written even if it is there already: that is rare, costs no more than a look would, and makes the blob young again.
    const temporary = `${path}.${randomUUID()}.tmp`;
    try {
      await this.#directory(dirname(path));
      if (!this.#syncs && bytes.length <= smallBytes) {
        // A few microseconds on the spot are less than four trips to the thread pool.
        this.#smallFiles.writeFileSync(temporary, bytes, { flag: 'wx', mode: 0o444 });
        this.#smallFiles.renameSync(temporary, path);
        return hash;
      }
      const file = await this.#files.open(temporary, 'wx', 0o444);
      try {
        await file.writeFile(bytes);
        if (this.#syncs) await file.sync();
      } finally {
        await file.close();
      }
      await this.#files.rename(temporary, path);
      await this.#syncDirectory(dirname(path));
    } catch (error) {
      this.#recent.remove(path);
      await this.#files.rm(temporary, { force: true }).catch(() => {}); // the first failure is the one to report
      throw storageError(error);
    }
    return hash;
  }

  async get(ref: BlobRef): Promise<Uint8Array> {
    const path = this.#path(ref);
    const recent = this.#recent.get(path);
    if (recent !== undefined) return recent;
    let bytes: Uint8Array;
    try {
      bytes = await this.#files.readFile(path);
    } catch (error) {
      throw unread(ref, error);
    }
    if (createHash('sha256').update(bytes).digest('hex') !== ref.hash) throw damagedBlob(ref, 'holds other bytes');
    return bytes;
  }

  /** The path of a blob, whose bytes were checked; they stay the store's. @throws `blob_damaged` */
  async file(ref: BlobRef): Promise<string> {
    const path = this.#path(ref);
    let isWhole: boolean;
    try {
      isWhole = await this.#verified.check(path, ref.hash);
    } catch (error) {
      throw unread(ref, error);
    }
    if (!isWhole) throw damagedBlob(ref, 'holds other bytes');
    return path;
  }

  async verify(ref: BlobRef): Promise<void> {
    await this.file(ref);
  }

  async read(ref: BlobRef): Promise<Readable> {
    return nodeSyncFiles.createReadStream(await this.file(ref), { highWaterMark: 1 << 20 });
  }

  async adopt(workspaceId: string, directory: string, files: readonly string[]): Promise<Manifest> {
    const manifest: ManifestEntry[] = [];
    try {
      for (const path of [...files].sort()) {
        const source = join(directory, checkedPath(path));
        const { hash, sizeBytes } = await this.#verified.hash(source);
        const target = this.#path({ workspaceId, hash });
        if (!(await this.#touch(target, hash))) await this.#linkOrCopy(source, target);
        manifest.push({ path, hash, sizeBytes });
      }
    } catch (error) {
      throw storageError(error);
    }
    return manifest;
  }

  async materialize(workspaceId: string, manifest: Manifest, directory: string): Promise<void> {
    if (manifest.length > 0 && (await this.#holds(directory, manifest))) return;
    await this.#files.rm(directory, { recursive: true, force: true });
    const temporary = `${directory}.${randomUUID()}.tmp`;
    try {
      for (const { path, hash } of manifest) {
        await this.#linkOrCopy(await this.file({ workspaceId, hash }), join(temporary, checkedPath(path)));
      }
      await this.#files.rename(temporary, directory);
    } catch (error) {
      await this.#files.rm(temporary, { recursive: true, force: true }).catch(() => {});
      if (await exists(this.#files, directory)) return; // another call was quicker
      throw storageError(error);
    }
  }

  async delete(ref: BlobRef): Promise<boolean> {
    const path = this.#path(ref);
    if (!(await this.#isOld(path))) return !(await exists(this.#files, path));
    // It may be asked for again at this very moment: what comes after the rename finds none and writes it anew, and what came before is seen.
    const aside = `${path}.${randomUUID()}.tmp`;
    try {
      await this.#files.rename(path, aside);
    } catch (error) {
      if (errno(error) === 'ENOENT') return true;
      throw storageError(error);
    }
    if (await this.#isOld(aside)) {
      this.#recent.remove(path);
      await this.#files.rm(aside, { force: true });
      return true;
    }
    await this.#files.rename(aside, path);
    return false;
  }

  async *all(): AsyncIterable<BlobRef> {
    if (!(await exists(this.#files, this.#root))) return;
    for await (const entry of await this.#files.opendir(this.#root, { recursive: true })) {
      if (!entry.isFile()) continue;
      const [workspaceId = '', shard, name = ''] = relative(this.#root, join(entry.parentPath, entry.name)).split(sep);
      if (/^[0-9a-f]{64}$/.test(name) && name.slice(0, 2) === shard) yield { workspaceId, hash: name };
      else if (name.endsWith('.tmp')) {
        const path = join(entry.parentPath, entry.name);
        if (await this.#isOld(path)) await this.#files.rm(path, { force: true });
      }
    }
  }

  /** Whether a file was neither written nor asked for within the grace time; false where there is none. */
  async #isOld(path: string): Promise<boolean> {
    try {
      const { mtimeMs } = await this.#files.stat(path);
      return Date.now() - mtimeMs >= this.#graceMs;
    } catch (error) {
      if (errno(error) === 'ENOENT') return false;
      throw storageError(error);
    }
  }

  #path({ workspaceId, hash }: BlobRef): string {
    if (!/^[a-z0-9-]+$/.test(workspaceId) || !/^[0-9a-f]{64}$/.test(hash)) {
      throw complaint({ field: 'blob', expected: 'a workspace id and a SHA-256', got: 'another form' });
    }
    return join(this.#root, workspaceId, hash.slice(0, 2), hash);
  }

  /** Whether a directory that was laid out before still holds what it should. */
  async #holds(directory: string, manifest: Manifest): Promise<boolean> {
    try {
      for (const { path, hash } of manifest) {
        if (!(await this.#verified.check(join(directory, checkedPath(path)), hash))) return false;
      }
      return true;
    } catch {
      return false; // a file is missing
    }
  }

  /** True when the blob is there and whole; makes it young again, so that a collection that runs meanwhile leaves it. */
  async #touch(path: string, hash: string): Promise<boolean> {
    try {
      const now = new Date();
      if (!(await this.#verified.check(path, hash))) return false; // damaged: written anew
      await this.#files.utimes(path, now, now);
      await this.#verified.trust(path, hash);
      return true;
    } catch {
      return false;
    }
  }

  async #linkOrCopy(source: string, target: string): Promise<void> {
    await this.#directory(dirname(target));
    const temporary = `${target}.${randomUUID()}.tmp`;
    try {
      try {
        await this.#files.link(source, temporary);
      } catch (error) {
        if (isNoSpace(errno(error)) || errno(error) === 'ENOENT') throw error;
        await this.#files.copyFile(source, temporary); // other device, or a file system without links
        await this.#sync(temporary);
      }
      await this.#files.chmod(temporary, 0o444);
      await this.#files.rename(temporary, target);
      await this.#files.rm(temporary, { force: true }); // a rename onto another link of the same file leaves the old name
      await this.#syncDirectory(dirname(target));
    } catch (error) {
      await this.#files.rm(temporary, { force: true }).catch(() => {});
      throw error;
    }
  }

  async #directory(path: string): Promise<void> {
    if (this.#made.has(path)) return;
    await this.#files.mkdir(path, { recursive: true });
    if (path.startsWith(this.#root)) this.#made.add(path);
  }

  async #sync(path: string): Promise<void> {
    if (!this.#syncs) return;
    const file = await this.#files.open(path, 'r+');
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }

  /** Without it a rename may be lost when the power fails. Windows can't sync directories and needs no such call. */
  async #syncDirectory(path: string): Promise<void> {
    if (!this.#syncs || process.platform === 'win32') return;
    const directory = await this.#files.open(path, 'r');
    try {
      await directory.sync();
    } finally {
      await directory.close();
    }
  }
}

async function exists(files: FileOperations, path: string): Promise<boolean> {
  try {
    await files.stat(path);
    return true;
  } catch {
    return false;
  }
}

function checkedPath(path: string): string {
  const clean = normalize(path);
  if (path === '' || isAbsolute(path) || clean === '..' || clean.startsWith(`..${sep}`)) {
    throw complaint({ field: 'files', expected: 'relative paths inside the directory', got: JSON.stringify(path) });
  }
  return clean;
}

function errno(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

/** Only what is not there was taken away: other failures, such as of too many open files, say nothing of the bytes. */
function unread(ref: BlobRef, error: unknown): LoopwrightError {
  return errno(error) === 'ENOENT' ? damagedBlob(ref, 'is missing', error) : storageError(error);
}

/** A failure of the file system in our words: full disks have their own code. */
export function storageError(error: unknown): LoopwrightError {
  if (LoopwrightError.isInstance(error)) return error;
  const code = errno(error);
  if (isNoSpace(code)) return diskFull({ field: 'dataDir', got: code, cause: error });
  return new LoopwrightError({ code: 'internal', message: `file storage failed: ${code ?? 'unknown'}`, cause: error });
}
