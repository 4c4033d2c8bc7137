/** A model of the hub, fetched into the cache: only what it needs, each file verified, the whole there at once. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { complaint, pinnedName, splitPinned } from '@loopwright/protocol';
import { asCacheError } from './cache-error.js';
import { downloadBlob, type Pause } from './download-blob.js';
import { type DownloadEvent, downloadFiles } from './download-files.js';
import { HubCache } from './hub-cache.js';
import { HubClient, type License, type RepositoryFile, type RepositoryInfo } from './hub-client.js';
import { gated } from './hub-errors.js';
import { isCommit, requireHubName } from './hub-name.js';
import type { HubSettings } from './hub-settings.js';
import { isAccepted, recordAcceptance } from './license-record.js';
import { isLinked, linkSnapshot, writeRef } from './link-snapshot.js';
import { neededFiles, shardFiles } from './needed-files.js';
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
  | DownloadEvent;

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
    throw gated({ repository, kind: client.kind, endpoint: client.endpoint });
  }
  const directory = cache.snapshot({ repository, commit });
  const files = await download(info, { ...options, client, folder, directory });
  await linkSnapshot({ repository: folder, directory, files });
  if (!isCommit(revision)) await writeRef(folder, { revision, commit });
  return { id: pinnedName({ repository, commit }), commit, directory, license };
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
  const { client, folder, directory, signal, pause, onEvent } = options;
  const { repository, commit, license } = info;
  const blobs = join(folder, 'blobs');
  await mkdir(blobs, { recursive: true });

  const { small, weights } = neededFiles(info);
  const files = [...small, weights.file];
  if (weights.type === 'index') {
    const { file } = weights;
    const isIndexLinked = await isLinked(directory, file);
    const each = { client, repository, commit, directory: blobs, signal, ...(pause && { pause }) };
    if (!isIndexLinked) await downloadBlob(file, each);
    const path = isIndexLinked ? join(directory, file.path) : join(blobs, file.hash.hex);
    files.push(...shardFiles(info, await readShardNames(path)));
  }
  await downloadFiles(files, {
    ...options,
    repository,
    commit,
    blobs,
    onStart: (totalBytes) =>
      onEvent?.({ type: 'pull-start', model: repository, commit, license, files: files.length, totalBytes }),
  });
  return files;
}
