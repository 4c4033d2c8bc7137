/** Files of a commit, one after another, into the blobs of its repository: those that are missing, where there is room for them. */
import { systemFreeBytes } from '@loopwright/engine';
import { diskFull } from '@loopwright/protocol';
import { type DownloadOptions, downloadBlob, hasBlob, type Pause } from './download-blob.js';
import type { HubClient, RepositoryFile } from './hub-client.js';
import { isLinked } from './link-snapshot.js';
import { partialBytes } from './partial-file.js';

export type DownloadEvent =
  | {
      readonly type: 'pull-progress';
      readonly file: string;
      /** Of all files, those that were there included. */
      readonly doneBytes: number;
      readonly totalBytes: number;
    }
  /** Another pull downloads the file, and this one waits for it. */
  | { readonly type: 'pull-wait'; readonly file: string };

export interface DownloadFilesOptions {
  readonly client: HubClient;
  readonly repository: string;
  readonly commit: string;
  /** Of the snapshot: what lies there already isn't downloaded. */
  readonly directory: string;
  /** The blobs of the repository; it exists. */
  readonly blobs: string;
  /** Told once that there is room, before anything is downloaded. */
  readonly onStart: (totalBytes: number) => void;
  readonly onEvent?: (event: DownloadEvent) => void;
  readonly signal?: AbortSignal;
  /** Bytes free on the disk of a directory. */
  readonly freeBytes?: (directory: string) => Promise<number>;
  readonly pause?: Pause;
}

/** @throws what {@link downloadBlob} throws; `disk_full` before anything is downloaded */
export async function downloadFiles(files: readonly RepositoryFile[], options: DownloadFilesOptions): Promise<void> {
  const { client, repository, commit, directory, blobs, signal, pause, onEvent, freeBytes = systemFreeBytes } = options;
  const each: DownloadOptions = { client, repository, commit, directory: blobs, signal, ...(pause && { pause }) };
  const isThere = async (file: RepositoryFile) => (await isLinked(directory, file)) || (await hasBlob(blobs, file));
  const totalBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const there = await Promise.all(files.map(isThere));
  const missing = files.filter((_, i) => !there[i]);
  await requireSpace(blobs, { missing, freeBytes });
  options.onStart(totalBytes);

  let doneBytes = totalBytes - missing.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  for (const file of missing) {
    const before = doneBytes;
    const onBytes = (bytes: number): void => {
      doneBytes = before + bytes;
      onEvent?.({ type: 'pull-progress', file: file.path, doneBytes, totalBytes });
    };
    const onBusy = () => onEvent?.({ type: 'pull-wait', file: file.path });
    await downloadBlob(file, { ...each, onBytes, onBusy });
  }
}

async function requireSpace(
  directory: string,
  {
    missing,
    freeBytes,
  }: { readonly missing: readonly RepositoryFile[]; readonly freeBytes: (directory: string) => Promise<number> },
): Promise<void> {
  let neededBytes = 0;
  for (const { sizeBytes, hash } of missing)
    neededBytes += Math.max(0, sizeBytes - (await partialBytes(directory, hash.hex)));
  const free = neededBytes === 0 ? 0 : await freeBytes(directory);
  if (free < neededBytes) throw diskFull({ field: directory, expected: `${neededBytes} bytes free`, got: `${free}` });
}
