/** Files that are being downloaded: which of several processes works on one, and what a dead one left to go on from. */
import { createHash, type Hash, randomBytes } from 'node:crypto';
import { type FileHandle, open, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { diskFull, isNoSpace } from '@loopwright/protocol';
import type { RepositoryFile } from './hub-client.js';

/**
 * A part of a blob lies beside it as `<hash>.partial` or, while a process works on it, as `<hash>.partial-<host>-<pid>-<random>`. Renaming
 * is how a process takes one: of two that try, one finds that it is gone. Other tools' partial files are left alone, as their locks
 * can't be asked for from here.
 */
const suffix = '.partial';

/** A part that has not grown for so long belongs to nobody any more, such as one of another machine on a shared disk. */
const silentAfterMs = 10 * 60 * 1000;

const host = createHash('sha256').update(hostname()).digest('hex').slice(0, 8);

export type PartialState =
  | { readonly type: 'taken'; readonly path: string }
  /** Another process, or another pull of this one, downloads it. */
  | { readonly type: 'busy' };

/**
 * Takes over the largest part that nobody works on, or makes an empty one. At most one process has a part of a blob: each makes its
 * claim before it looks for others', so of two at once the later sees the earlier and lets go; it may be that both do.
 */
export async function takePartial(directory: string, blob: string): Promise<PartialState> {
  const parts = await partsOf(directory, blob);
  if (parts.some(({ isFree }) => !isFree)) return { type: 'busy' };
  const path = join(directory, `${blob}${suffix}-${host}-${process.pid}-${randomBytes(4).toString('hex')}`);
  const [largest] = parts;
  try {
    if (largest === undefined) await (await open(path, 'wx')).close();
    else {
      // As of now it is somebody's: its age says nothing any more.
      await utimes(largest.path, new Date(), new Date());
      await rename(largest.path, path);
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException; // only compared
    if (largest !== undefined && code === 'ENOENT') return { type: 'busy' }; // somebody was faster
    throw asDiskFull(error, path);
  }
  const others = (await partsOf(directory, blob)).filter((part) => !part.isFree && part.path !== path);
  if (others.length === 0) return { type: 'taken', path };
  await releasePartial(directory, { blob, path });
  return { type: 'busy' };
}

/** Lets go of a part, for the next pull to go on from. */
export async function releasePartial(
  directory: string,
  { blob, path }: { readonly blob: string; readonly path: string },
): Promise<void> {
  const sizeBytes = (await stat(path).catch(() => undefined))?.size ?? 0;
  if (sizeBytes === 0) await rm(path, { force: true });
  else await rename(path, join(directory, `${blob}${suffix}`));
}

/** Bytes that a pull would go on from. */
export async function partialBytes(directory: string, blob: string): Promise<number> {
  return (await partsOf(directory, blob))[0]?.sizeBytes ?? 0;
}

/** Removes the parts of a blob that is whole. */
export async function removePartials(directory: string, blob: string): Promise<void> {
  for (const { path, isFree } of await partsOf(directory, blob)) if (isFree) await rm(path, { force: true });
}

interface Part {
  readonly path: string;
  readonly sizeBytes: number;
  readonly isFree: boolean;
}

/** The largest first. */
async function partsOf(directory: string, blob: string): Promise<Part[]> {
  const names = (await readdir(directory).catch(() => [])).filter((name) => name.startsWith(`${blob}${suffix}`));
  const parts = await Promise.all(
    names.map(async (name): Promise<Part | undefined> => {
      const path = join(directory, name);
      const info = await stat(path).catch(() => undefined);
      if (info === undefined) return undefined;
      return { path, sizeBytes: info.size, isFree: isFree(name, info.mtimeMs) };
    }),
  );
  return parts.filter((part) => part !== undefined).sort((a, b) => b.sizeBytes - a.sizeBytes);
}

function isFree(name: string, modifiedAtMs: number): boolean {
  const owner = /-([0-9a-f]{8})-(\d+)-[0-9a-f]{8}$/.exec(name);
  if (owner === null) return true;
  if (Date.now() - modifiedAtMs > silentAfterMs) return true;
  if (owner[1] !== host) return false;
  const pid = Number(owner[2]);
  // In containers, the next process often has the number of the one that died.
  if (pid === process.pid) return modifiedAtMs < Date.now() - process.uptime() * 1000;
  try {
    process.kill(pid, 0); // asks only
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH'; // EPERM: it lives, and is another user's
  }
}

/** A part that is open, hashed as it grows. */
export class PartialFile implements AsyncDisposable {
  readonly path: string;
  readonly #file: Pick<RepositoryFile, 'sizeBytes' | 'hash'>;
  readonly #handle: FileHandle;
  #hash: Hash;
  #sizeBytes = 0;

  private constructor(path: string, file: Pick<RepositoryFile, 'sizeBytes' | 'hash'>, handle: FileHandle) {
    this.path = path;
    this.#file = file;
    this.#handle = handle;
    this.#hash = newHash(file);
  }

  /** Opens or makes it, and hashes what is there. */
  static async open(path: string, file: Pick<RepositoryFile, 'sizeBytes' | 'hash'>): Promise<PartialFile> {
    const handle = await open(path, 'a+').catch((error: unknown) => {
      throw asDiskFull(error, path);
    });
    const partial = new PartialFile(path, file, handle);
    const stream = handle.createReadStream({ start: 0, autoClose: false });
    for await (const bytes of stream) partial.#count(bytes as Buffer); // true: no encoding was set
    if (partial.sizeBytes > file.sizeBytes) await partial.restart();
    return partial;
  }

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  /** @throws `disk_full` */
  async append(bytes: Uint8Array): Promise<void> {
    try {
      await this.#handle.appendFile(bytes);
    } catch (error) {
      throw asDiskFull(error, this.path);
    }
    this.#count(bytes);
  }

  /** Empties it. */
  async restart(): Promise<void> {
    await this.#handle.truncate(0);
    this.#hash = newHash(this.#file);
    this.#sizeBytes = 0;
  }

  /** Whether size and hash are those of the file. */
  isWhole(): boolean {
    return this.#sizeBytes === this.#file.sizeBytes && this.#hash.copy().digest('hex') === this.#file.hash.hex;
  }

  /** Gives it its name, when its bytes are on the disk. */
  async moveTo(path: string): Promise<void> {
    await this.#handle.sync();
    await rename(this.path, path);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close();
  }

  #count(bytes: Uint8Array): void {
    this.#hash.update(bytes);
    this.#sizeBytes += bytes.byteLength;
  }
}

function newHash({ sizeBytes, hash }: Pick<RepositoryFile, 'sizeBytes' | 'hash'>): Hash {
  if (hash.algorithm === 'sha256') return createHash('sha256');
  return createHash('sha1').update(`blob ${sizeBytes}\0`);
}

function asDiskFull(error: unknown, path: string): unknown {
  const { code } = error as NodeJS.ErrnoException; // only compared
  return isNoSpace(code) ? diskFull({ field: path, got: code, cause: error }) : error;
}
