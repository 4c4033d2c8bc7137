/** Reading files that come from outside: whole reads, and refusals that name file, field, expected, got and remedy. */
import type { FileHandle } from 'node:fs/promises';
import { open, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import { chunks, errorCode, ioChunkBytes, rest, throwIfCancelled } from './atomic-file.js';
import { widenBfloat16, widenFloat16 } from './numbers.js';

/** Opens a file of this format. @throws `model_invalid` when there is none, or it can't be read */
export async function openForReading(path: string, format: string): Promise<FileHandle> {
  try {
    if (!(await stat(path)).isFile()) throw invalidFile(path, 'path', 'a file', 'something else');
    return await open(path, 'r');
  } catch (error) {
    if (LoopwrightError.isInstance(error)) throw error;
    const got = errorCode(error) === 'ENOENT' ? 'no such file' : (errorCode(error) ?? 'an unreadable file');
    throw invalidFile(path, 'path', `a readable ${format} file`, got, error);
  }
}

/** Fills `bytes` from `position` of the file. @throws `model_invalid` when the file ends before */
export async function readFully(
  handle: FileHandle,
  bytes: Uint8Array,
  position: number,
  { path, signal }: { readonly path: string; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  let done = 0;
  while (done < bytes.byteLength) {
    throwIfCancelled(signal, path);
    const length = Math.min(ioChunkBytes, bytes.byteLength - done);
    const { bytesRead } = await handle.read(bytes, done, length, position + done);
    if (bytesRead === 0) throw cutFile(path, 'the values', position + bytes.byteLength, position + done);
    done += bytesRead;
  }
}

/** Fills the parts one after the other from `position` of the file, in few calls. @throws `model_invalid` when the file ends before */
export async function readPartsFully(
  handle: FileHandle,
  parts: readonly Uint8Array[],
  position: number,
  { path, signal }: { readonly path: string; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const end = parts.reduce((sum, { byteLength }) => sum + byteLength, position);
  let at = position;
  for (const chunk of chunks(parts)) {
    for (let left = chunk; left.length > 0; ) {
      throwIfCancelled(signal, path);
      const { bytesRead } = await handle.readv(left, at);
      if (bytesRead === 0) throw cutFile(path, 'the values', end, at);
      at += bytesRead;
      left = rest(left, bytesRead);
    }
  }
}

/** Where a tensor's values go: `into`, which must have its length, or a new array. @throws `invalid_argument` */
export function valuesFor(name: string, count: number, into: Float32Array | undefined): Float32Array {
  if (into !== undefined && into.length !== count) {
    throw complaint({ field: 'into', expected: `${count} values for ${showName(name)}`, got: `${into.length}` });
  }
  return into ?? new Float32Array(count);
}

/**
 * Fills `values` from numbers of half the width, without a second buffer: the file's bytes go into the second half of the result and are
 * widened from the front. Value i is written to bytes 4i..4i+4, which never passes the next unread value at 2n+2i+2.
 */
export async function readHalves(
  format: 'F16' | 'BF16',
  values: Float32Array,
  read: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  const halves = new Uint16Array(values.buffer, values.byteOffset + 2 * values.length, values.length);
  await read(bytesOf(halves));
  if (format === 'F16') widenFloat16(halves, values);
  else widenBfloat16(halves, values);
}

/** The bytes under a typed array. */
export function bytesOf(values: ArrayBufferView): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

export function cutFile(path: string, what: string, expectedBytes: number, gotBytes: number): LoopwrightError {
  const remedy = 'the file was cut short; copy or download it again';
  return new LoopwrightError({
    code: 'model_invalid',
    message: `${basename(path)}: expected at least ${expectedBytes} bytes to hold ${what}, got ${gotBytes} bytes; ${remedy}`,
    details: { field: `${path}: ${what}`, expected: `${expectedBytes} bytes`, got: `${gotBytes} bytes`, remedy },
  });
}

export function invalidFile(
  path: string,
  field: string,
  expected: string,
  got: string,
  cause?: unknown,
): LoopwrightError {
  return complaint({
    code: 'model_invalid',
    field: `${basename(path)}: ${field}`,
    expected,
    got,
    remedy: 'write or download the file again',
    cause,
  });
}

/** A name from outside, short and without control characters. */
export function showName(name: string): string {
  return JSON.stringify(name.length > 120 ? `${name.slice(0, 120)}…` : name).slice(1, -1);
}
