/** Files that are there whole or not at all: written beside their place, synced, then renamed into it. */
import { randomBytes } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { open, readdir, rename, stat, statfs, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { diskFull, isNoSpace, LoopwrightError } from '@loopwright/protocol';

/** Writes all parts, one after the other, at the end of the file; replaced in tests, to fail where a real disk would. */
export type WriteBytes = (handle: FileHandle, parts: readonly Uint8Array[]) => Promise<void>;

export interface WriteOptions {
  readonly signal?: AbortSignal;
  readonly writeBytes?: WriteBytes;
  /** Bytes free to this user on the disk of a directory; replaced in tests. */
  readonly freeBytes?: (directory: string) => Promise<number>;
}

/**
 * Appends bytes to the file being written. Many small parts are best given together: each call waits for the event loop, which a
 * busy engine lets go round once a slice.
 */
export type Append = (bytes: Uint8Array | readonly Uint8Array[]) => Promise<void>;

/** One write or read call moves at most this much: the system takes no more than 2 GiB, and a signal is looked at in between. */
export const ioChunkBytes = 256 * 1024 * 1024;

/**
 * Writes a file atomically: `produce` appends its bytes; the file gets its name when all of them are on the disk.
 * Two writers of one path do not meet: each has its own temporary name, and the last rename wins.
 *
 * @param options `sizeBytes` is what will be written, where that is known: with less than that free it is refused at once
 * @throws `disk_full` when the disk or a quota is full, `cancelled` when the signal fires, `internal` for other system errors;
 *   in every case, and when `produce` throws, the temporary file is gone and an older file of that name is untouched
 */
export async function writeFileAtomically(
  path: string,
  produce: (append: Append) => Promise<void>,
  {
    signal,
    writeBytes = writeFully,
    freeBytes = systemFreeBytes,
    sizeBytes,
  }: WriteOptions & { readonly sizeBytes?: number } = {},
): Promise<void> {
  throwIfCancelled(signal, path);
  const temporary = temporaryName(path);
  let handle: FileHandle | undefined;
  try {
    if (sizeBytes !== undefined) await requireSpace(path, { sizeBytes, freeBytes });
    handle = await open(temporary, 'wx');
    const target = handle;
    await produce(async (bytes) => {
      for (const parts of chunks(bytes instanceof Uint8Array ? [bytes] : bytes)) {
        throwIfCancelled(signal, path);
        await writeBytes(target, parts);
      }
    });
    await handle.sync();
    await handle.close();
    handle = undefined;
    throwIfCancelled(signal, path);
    await rename(temporary, path);
    await syncDirectory(dirname(path));
  } catch (error) {
    await handle?.close().catch(() => undefined);
    await unlink(temporary).catch(() => undefined);
    throw asWriteError(error, path);
  }
}

/** {@link writeFileAtomically} for a JSON value, indented, with a line end. */
export function writeJsonAtomically(path: string, value: unknown, options?: WriteOptions): Promise<void> {
  const bytes = new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`);
  return writeFileAtomically(path, (append) => append(bytes), options);
}

const temporarySuffix = '.tmp';

function temporaryName(path: string): string {
  return `${path}.${process.pid}-${randomBytes(6).toString('hex')}${temporarySuffix}`;
}

/** A write that has not touched its file for so long has died with its process. */
const abandonedAfterMs = 60 * 60 * 1000;

/** Removes what killed processes left of unfinished writes whose file name starts with `prefix`; younger ones may still be going on. */
export async function removeAbandonedWrites(
  directory: string,
  { prefix, now = Date.now }: { readonly prefix: string; readonly now?: () => number },
): Promise<void> {
  for (const name of await readdir(directory)) {
    if (!name.startsWith(prefix) || !name.endsWith(temporarySuffix)) continue;
    const path = join(directory, name);
    const modifiedAtMs = (await stat(path).catch(() => undefined))?.mtimeMs;
    // Another process may remove it first; either way it is gone.
    if (modifiedAtMs !== undefined && now() - modifiedAtMs > abandonedAfterMs)
      await unlink(path).catch(() => undefined);
  }
}

/** Bytes free on the disk of a directory. */
export async function systemFreeBytes(directory: string): Promise<number> {
  const { bavail, bsize } = await statfs(directory);
  return bavail * bsize;
}

async function requireSpace(
  path: string,
  { sizeBytes, freeBytes }: { sizeBytes: number; freeBytes: (directory: string) => Promise<number> },
): Promise<void> {
  const free = await freeBytes(dirname(path));
  if (free >= sizeBytes) return;
  throw diskFull({ field: path, expected: `${sizeBytes} bytes free`, got: `${free}` });
}

/** A failed write, with the code that tells a person what to mend. Errors of ours pass through. */
export function asWriteError(error: unknown, path: string): LoopwrightError {
  if (LoopwrightError.isInstance(error)) return error;
  const systemCode = errorCode(error);
  if (isNoSpace(systemCode)) return diskFull({ field: path, got: systemCode, cause: error });
  return new LoopwrightError({
    code: 'internal',
    message: `${path}: could not be written (${systemCode ?? 'unknown error'})`,
    details: { field: path, ...(systemCode === undefined ? {} : { got: systemCode }) },
    cause: error,
  });
}

/** The system's error code such as `ENOENT`, where there is one. */
export function errorCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}

export function throwIfCancelled(signal: AbortSignal | undefined, what: string): void {
  if (signal?.aborted) {
    throw new LoopwrightError({ code: 'cancelled', message: `${what}: cancelled by the caller`, cause: signal.reason });
  }
}

/** The parts in lists of at most {@link ioChunkBytes}, larger parts cut. */
export function* chunks(parts: Iterable<Uint8Array>): Generator<Uint8Array[]> {
  let chunk: Uint8Array[] = [];
  let room = ioChunkBytes;
  for (const part of parts) {
    for (let start = 0; start < part.byteLength; ) {
      const piece = part.subarray(start, start + room);
      chunk.push(piece);
      start += piece.byteLength;
      room -= piece.byteLength;
      if (room > 0) continue;
      yield chunk;
      chunk = [];
      room = ioChunkBytes;
    }
  }
  if (chunk.length > 0) yield chunk;
}

/** What is left of the parts behind their first `done` bytes; none of the parts may be empty. */
export function rest(parts: readonly Uint8Array[], done: number): Uint8Array[] {
  let skipped = 0;
  for (const [i, part] of parts.entries()) {
    if (skipped + part.byteLength > done) return [part.subarray(done - skipped), ...parts.slice(i + 1)];
    skipped += part.byteLength;
  }
  return [];
}

const writeFully: WriteBytes = async (handle, parts) => {
  let left = parts;
  while (left.length > 0) left = rest(left, (await handle.writev([...left])).bytesWritten);
};

/** Makes the rename itself durable. Windows can't open directories, and there the rename is journalled. */
async function syncDirectory(directory: string): Promise<void> {
  if (process.platform === 'win32') return;
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
