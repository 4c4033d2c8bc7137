/** Parts of a data set of the hub, fetched into the cache: each file verified, resumed where an earlier pull stopped. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { pinnedName } from '@loopwright/protocol';
import { asCacheError } from './cache-error.js';
import { chooseParts, dataParts } from './data-layout.js';
import { writeDataRecord } from './data-record.js';
import type { Pause } from './download-blob.js';
import { type DownloadEvent, downloadFiles } from './download-files.js';
import { datasetName, findDataset, type HubDataset } from './find-dataset.js';
import { repositoryFolder } from './hub-cache.js';
import { HubClient, type License } from './hub-client.js';
import { gated } from './hub-errors.js';
import { isCommit } from './hub-name.js';
import type { HubSettings } from './hub-settings.js';
import { isAccepted, recordAcceptance } from './license-record.js';
import { linkSnapshot, writeRef } from './link-snapshot.js';
import { datasetKind } from './repository-kind.js';

export type DataPullEvent =
  | {
      readonly type: 'pull-start';
      /** `owner/name`. */
      readonly dataset: string;
      readonly commit: string;
      readonly license: License;
      readonly config: string;
      readonly splits: readonly string[];
      readonly files: number;
      readonly totalBytes: number;
    }
  | DownloadEvent;

export interface PullDatasetOptions {
  /** Records that the user accepts the licence; gated data sets need it once. */
  readonly acceptLicense?: boolean;
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: DataPullEvent) => void;
}

/** @internal what else a pull is made of */
export interface DataPullParts extends PullDatasetOptions {
  readonly settings: HubSettings;
  readonly client?: HubClient;
  readonly freeBytes?: (directory: string) => Promise<number>;
  readonly pause?: Pause;
}

export interface PulledDataset {
  /** `owner/name@commit`. */
  readonly id: string;
  readonly commit: string;
  readonly config: string;
  readonly splits: readonly string[];
  readonly directory: string;
  /** Undefined where nothing was asked of the hub. */
  readonly license: License | undefined;
}

/**
 * Of a configuration, the split that is named or all. Where HF_HUB_OFFLINE is set, what the cache holds of one split.
 *
 * @throws `invalid_argument` for another form of name, and for parts that there aren't, listing those that there are; `not_found`;
 *   `model_gated` until its licence is accepted; `unauthenticated`; `data_invalid` for one without files that can be read, or wrong
 *   bytes; `disk_full` before anything is downloaded; `connection_lost`, `limit_exceeded`, `cancelled`
 */
export async function pullFromHub(dataset: HubDataset, options: DataPullParts): Promise<PulledDataset> {
  try {
    return await pull(dataset, options);
  } catch (error) {
    throw asCacheError(error, options.settings.cacheDirectory);
  }
}

async function pull(dataset: HubDataset, options: DataPullParts): Promise<PulledDataset> {
  const { settings, acceptLicense = false, signal, onEvent } = options;
  const { repository, revision } = datasetName(dataset);
  if (settings.offline) {
    const { split, files: _, ...found } = await findDataset(dataset, settings);
    return { ...found, splits: [split], license: undefined };
  }
  const client = options.client ?? new HubClient({ ...settings, kind: datasetKind });
  const info = await client.repository({ repository, revision }, { signal });
  const { commit, license } = info;
  const folder = repositoryFolder(settings.cacheDirectory, { kind: datasetKind, name: repository });
  if (acceptLicense) await recordAcceptance(folder, { model: repository, commit, license });
  else if (info.gated !== undefined && !(await isAccepted(folder, license))) {
    throw gated({ repository, kind: datasetKind, endpoint: client.endpoint });
  }
  const parts = dataParts(info);
  const chosen = chooseParts(parts, dataset);
  const { config } = chosen[0];
  const splits = chosen.map(({ split }) => split);
  // Two splits may share a file.
  const files = [...new Map(chosen.flatMap((part) => part.files).map((file) => [file.path, file])).values()];
  const [directory, blobs] = [join(folder, 'snapshots', commit), join(folder, 'blobs')];
  await mkdir(blobs, { recursive: true });
  await downloadFiles(files, {
    ...options,
    client,
    repository,
    commit,
    directory,
    blobs,
    onStart: (totalBytes) =>
      onEvent?.({
        type: 'pull-start',
        dataset: repository,
        commit,
        license,
        config,
        splits,
        files: files.length,
        totalBytes,
      }),
  });
  await linkSnapshot({ repository: folder, directory, files });
  await writeDataRecord(folder, {
    commit,
    parts: parts.map((part) => ({ ...part, files: part.files.map(({ path, sizeBytes }) => ({ path, sizeBytes })) })),
  });
  if (!isCommit(revision)) await writeRef(folder, { revision, commit });
  return { id: pinnedName({ repository, commit }), commit, config, splits, directory, license };
}
