/** A model of the hub, fetched into the cache: only what it needs, each file verified, the whole there at once. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemFreeBytes } from '@loopwright/engine';
import { complaint, diskFull, isNoSpace, LoopwrightError, pinnedName, splitPinned } from '@loopwright/protocol';
import { type DownloadOptions, downloadBlob, hasBlob, type Pause } from './download-blob.js';
import { HubCache } from './hub-cache.js';
import { HubClient, type License, type RepositoryFile, type RepositoryInfo } from './hub-client.js';
import { gated } from './hub-errors.js';
import { isCommit, requireHubName } from './hub-name.js';
import type { HubSettings } from './hub-settings.js';
import { isAccepted, recordAcceptance } from './license-record.js';
import { isLinked, linkSnapshot, writeRef } from './link-snapshot.js';
import { neededFiles, shardFiles } from './needed-files.js';
import { partialBytes } from './partial-file.js';
import { readShardNames } from './snapshot.js';

export type PullEvent =
  | {
      readonly type: 'pull-start';
      /** `org/name`. */
      readonly model: string;
      readonly commit: string;
      readonly license: License;
      readonly files: number;
      readonly totalBytes: number;
    }
  | {
      readonly type: 'pull-progress';
      readonly file: string;
      /** Of all files, those that were there included. */
      readonly doneBytes: number;
      readonly totalBytes: number;
    }
  /** Another pull downloads the file, and this one waits for it. */
  | { readonly type: 'pull-wait'; readonly file: string };

export interface PullOptions {
  readonly settings: HubSettings;
  /** Records that the user accepts the licence; gated models need it once. */
  readonly acceptLicense?: boolean;
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: PullEvent) => void;
  readonly client?: HubClient;
  /** Bytes free on the disk of a directory. */
  readonly freeBytes?: (directory: string) => Promise<number>;
  readonly pause?: Pause;
}

export interface PulledModel {
  /** `org/name@commit`. */
  readonly id: string;
  readonly commit: string;
  readonly directory: string;
  /** Undefined where nothing was asked of the hub. */
  readonly license: License | undefined;
}

/**
 * Makes a model loadable by its name. Pulls of one model at once share the work; a pull after one that failed goes on from there.
 *
 * @param name `org/name` or `org/name@revision`
 * @throws `invalid_argument` for another form; `unknown_model`; `model_gated` until its licence is accepted; `unauthenticated`;
 *   `model_invalid` for a repository without safetensors weights, or wrong bytes; `disk_full` before anything is downloaded;
 *   `connection_lost`, `limit_exceeded`, `cancelled`; `invalid_argument` for a cache that can't be written
 */
export async function pullModel(name: string, options: PullOptions): Promise<PulledModel> {
  try {
    return await pull(name, options);
  } catch (error) {
    throw asCacheError(error, options.settings.cacheDirectory);
  }
}

async function pull(name: string, options: PullOptions): Promise<PulledModel> {
  const { settings, acceptLicense = false, signal, client = new HubClient(settings) } = options;
  const { repository, revision } = requireHubName(name);
  const cache = new HubCache(settings.cacheDirectory);
  if (settings.offline) return findOffline(cache, name);
  const info = await client.repository({ repository, revision }, { signal });
  const { commit, license } = info;
  const folder = cache.repository(repository);
  if (acceptLicense) await recordAcceptance(folder, { model: repository, commit, license });
  else if (info.gated !== undefined && !(await isAccepted(folder, license))) {
    throw gated({ repository, endpoint: client.endpoint });
  }
  const directory = cache.snapshot({ repository, commit });
  const files = await download(info, { ...options, client, folder, directory });
  await linkSnapshot({ repository: folder, directory, files });
  if (!isCommit(revision)) await writeRef(folder, { revision, commit });
  return { id: pinnedName({ repository, commit }), commit, directory, license };
}

/** What the file system refused in the cache, as a person can mend it. */
function asCacheError(error: unknown, cacheDirectory: string): unknown {
  if (LoopwrightError.isInstance(error)) return error;
  const { code, path = cacheDirectory } = error as NodeJS.ErrnoException; // only compared and shown
  if (isNoSpace(code)) return diskFull({ field: path, got: code, cause: error });
  if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS' && code !== 'ENOTDIR') return error;
  return complaint({
    field: 'HF_HUB_CACHE',
    expected: 'a folder that this user may write to',
    got: `${path} (${code})`,
    remedy: 'set HF_HUB_CACHE to a folder of yours, or mend the rights of this one',
    cause: error,
  });
}

async function findOffline(cache: HubCache, name: string): Promise<PulledModel> {
  const found = await cache.find(name);
  if (found === undefined) {
    throw complaint({
      code: 'unknown_model',
      field: 'name',
      expected: `a model that is whole in ${cache.directory}, as HF_HUB_OFFLINE is set`,
      got: name,
      remedy: 'unset HF_HUB_OFFLINE to pull it, or name one that `loopwright models` lists',
    });
  }
  const { revision: commit = '' } = splitPinned(found.id); // the cache pins what it finds
  return { ...found, commit, license: undefined };
}

interface Download extends PullOptions {
  readonly client: HubClient;
  /** Of the repository. */
  readonly folder: string;
  /** Of the snapshot. */
  readonly directory: string;
}

/** Every needed file, as a blob or, of tools that can't link, in the snapshot itself. */
async function download(info: RepositoryInfo, options: Download): Promise<readonly RepositoryFile[]> {
  const { client, folder, directory, signal, pause, onEvent, freeBytes = systemFreeBytes } = options;
  const { repository, commit, license } = info;
  const blobs = join(folder, 'blobs');
  await mkdir(blobs, { recursive: true });
  const each: DownloadOptions = { client, repository, commit, directory: blobs, signal, ...(pause && { pause }) };
  const isThere = async (file: RepositoryFile) => (await isLinked(directory, file)) || (await hasBlob(blobs, file));

  const { small, weights } = neededFiles(info);
  const files = [...small, weights.file];
  if (weights.type === 'index') {
    const { file } = weights;
    const isIndexLinked = await isLinked(directory, file);
    if (!isIndexLinked) await downloadBlob(file, each);
    const path = isIndexLinked ? join(directory, file.path) : join(blobs, file.hash.hex);
    files.push(...shardFiles(info, await readShardNames(path)));
  }
  const totalBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  const there = await Promise.all(files.map(isThere));
  const missing = files.filter((_, i) => !there[i]);
  await requireSpace(blobs, { missing, freeBytes });
  onEvent?.({ type: 'pull-start', model: repository, commit, license, files: files.length, totalBytes });

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
  return files;
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
