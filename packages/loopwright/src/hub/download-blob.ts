/** One file of the hub, into the blobs of the cache: resumed, retried, verified, and there whole or not at all. */
import { randomInt } from 'node:crypto';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import type { HubClient, RepositoryFile } from './hub-client.js';
import { connectionLost } from './hub-errors.js';
import { PartialFile, releasePartial, removePartials, takePartial } from './partial-file.js';
import { cancellation } from './stall-guard.js';

/** Waits, or rejects when the signal fires. */
export type Pause = (ms: number, signal: AbortSignal | undefined) => Promise<void>;

export interface DownloadOptions {
  readonly client: HubClient;
  readonly repository: string;
  readonly commit: string;
  /** The blobs of the repository; it exists. */
  readonly directory: string;
  readonly signal?: AbortSignal | undefined;
  /** Told the bytes of this file that are there, as they grow; they fall when it is begun again. */
  readonly onBytes?: (bytes: number) => void;
  /** Told once when another pull downloads it. */
  readonly onBusy?: () => void;
  readonly pause?: Pause;
}

/** Attempts in a row that bring no byte. */
const maxAttempts = 5;
/** Between looks at what another process downloads, half as much more or less: two that give way to each other part so. */
const busyMs = 500;

/**
 * Returns when the blob is there, whoever downloaded it.
 *
 * @throws `model_invalid` when size or hash are not those that the hub stated, from the beginning; `disk_full`, `cancelled`; what
 *   {@link HubClient.file} throws, after repeated attempts where these can help. What was downloaded is kept, but for wrong bytes
 */
export async function downloadBlob(file: RepositoryFile, options: DownloadOptions): Promise<void> {
  const { directory, signal, onBytes, onBusy, pause = pauseFor } = options;
  const { hex } = file.hash;
  let isTold = false;
  for (;;) {
    if (signal?.aborted === true) throw cancellation(signal);
    if (await hasBlob(directory, file)) break;
    const partial = await takePartial(directory, hex);
    if (partial.type === 'taken') {
      // Whoever had it may have finished since the look above.
      if (await hasBlob(directory, file)) await releasePartial(directory, { blob: hex, path: partial.path });
      else await complete(file, partial.path, options);
      break;
    }
    if (!isTold) onBusy?.();
    isTold = true;
    await pause(busyMs * (0.5 + randomInt(1000) / 1000), signal);
  }
  onBytes?.(file.sizeBytes);
  await removePartials(directory, hex);
}

/** Whether the blob is there with the stated size. Its content was verified by whoever put it there. */
export async function hasBlob(directory: string, { hash, sizeBytes }: RepositoryFile): Promise<boolean> {
  const info = await stat(join(directory, hash.hex)).catch(() => undefined);
  return info?.isFile() === true && info.size === sizeBytes;
}

async function complete(file: RepositoryFile, path: string, options: DownloadOptions): Promise<void> {
  const { directory } = options;
  try {
    await using partial = await PartialFile.open(path, file);
    options.onBytes?.(partial.sizeBytes);
    await fill(partial, file, options);
    await partial.moveTo(join(directory, file.hash.hex));
  } catch (error) {
    if (LoopwrightError.isInstance(error) && error.code === options.client.kind.invalid)
      await rm(path, { force: true });
    else await releasePartial(directory, { blob: file.hash.hex, path });
    throw error;
  }
}

/** Downloads until the file is whole. */
async function fill(partial: PartialFile, file: RepositoryFile, options: DownloadOptions): Promise<void> {
  const { signal, pause = pauseFor } = options;
  // Bytes of an earlier connection may be of another file; those of one answer from its beginning may not.
  let isPieced = partial.sizeBytes > 0;
  let failures = 0;
  for (;;) {
    const before = partial.sizeBytes;
    try {
      if (before < file.sizeBytes) await receive(partial, file, options);
    } catch (error) {
      if (!LoopwrightError.isInstance(error) || !['connection_lost', 'limit_exceeded'].includes(error.code))
        throw error;
      failures = partial.sizeBytes > before ? 1 : failures + 1;
      if (failures >= maxAttempts) throw error;
      isPieced ||= partial.sizeBytes > 0;
      await pause(delayMs(error, failures), signal);
      continue;
    }
    if (partial.isWhole()) return;
    if (!isPieced) throw wrongContent(options.client, file, partial.sizeBytes);
    isPieced = false;
    await partial.restart();
    options.onBytes?.(0);
  }
}

/** One answer of the hub. @throws `connection_lost` when it is too short */
async function receive(partial: PartialFile, file: RepositoryFile, options: DownloadOptions): Promise<void> {
  const { client, repository, commit, signal, onBytes } = options;
  const { path, sizeBytes } = file;
  const { start, body } = await client.file({ repository, commit, path }, { from: partial.sizeBytes, signal });
  if (start !== partial.sizeBytes) await partial.restart();
  for await (const bytes of body) {
    if (partial.sizeBytes + bytes.byteLength > sizeBytes)
      throw wrongContent(client, file, partial.sizeBytes + bytes.byteLength);
    await partial.append(bytes);
    onBytes?.(partial.sizeBytes);
  }
  if (partial.sizeBytes < sizeBytes) throw connectionLost(undefined);
}

function wrongContent(
  { kind }: HubClient,
  { path, sizeBytes, hash }: RepositoryFile,
  gotBytes: number,
): LoopwrightError {
  return complaint({
    code: kind.invalid,
    field: path,
    expected: `${sizeBytes} bytes with ${hash.algorithm} ${hash.hex}`,
    got: gotBytes === sizeBytes ? 'as many with another hash' : `${gotBytes} bytes or more`,
    remedy: 'pull again; if that does not help, a proxy or mirror on the way changes files',
  });
}

/** 1, 2, 4, 8 s and up to a quarter more, or what the hub asks for. */
function delayMs({ details }: LoopwrightError, failures: number): number {
  const { retryAfterMs } = details;
  if (typeof retryAfterMs === 'number') return Math.min(retryAfterMs, 5 * 60_000);
  return 1000 * 2 ** (failures - 1) * (1 + randomInt(250) / 1000);
}

async function pauseFor(ms: number, signal: AbortSignal | undefined): Promise<void> {
  try {
    await sleep(ms, undefined, signal === undefined ? {} : { signal });
  } catch (error) {
    throw signal?.aborted === true ? cancellation(signal) : error;
  }
}
