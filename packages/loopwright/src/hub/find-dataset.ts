/** A data set of the hub in the cache. Nothing is asked of the hub. */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { complaint, pinnedName } from '@loopwright/protocol';
import { chooseParts, onePart, type PartChoice } from './data-layout.js';
import { readDataRecord } from './data-record.js';
import { commitOf, repositoryFolder } from './hub-cache.js';
import { type HubName, requireHubName } from './hub-name.js';
import type { HubSettings } from './hub-settings.js';
import { datasetKind } from './repository-kind.js';

/** A part of a data set of the hub. */
export interface HubDataset extends PartChoice {
  /** `owner/name`, or `owner/name@revision`. */
  readonly hub: string;
  /** A branch, a tag or a commit; default `main`, or what the name says. */
  readonly revision?: string;
  /** Needed where the data set has several configurations, none of which is called `default`. */
  readonly config?: string;
  /** Such as `train`. Needed where there are several. */
  readonly split?: string;
}

export interface FoundDataset {
  /** `owner/name@commit`. */
  readonly id: string;
  readonly commit: string;
  readonly config: string;
  readonly split: string;
  readonly directory: string;
  /** Within the directory. */
  readonly files: readonly string[];
}

/** @throws `invalid_argument` */
export function datasetName({ hub, revision }: Pick<HubDataset, 'hub' | 'revision'>): HubName {
  if (typeof hub !== 'string' || (revision !== undefined && typeof revision !== 'string')) {
    throw complaint({ field: 'hub', expected: 'owner/name, and a revision that is a text', got: typeof hub });
  }
  if (revision !== undefined && hub.includes('@')) {
    throw complaint({ field: 'revision', expected: 'one revision', got: 'one here and one in the name' });
  }
  return requireHubName(revision === undefined ? hub : `${hub}@${revision}`, datasetKind);
}

/** @throws `not_found` when no pull has fetched it; `invalid_argument` for parts that it doesn't have */
export async function findDataset(dataset: HubDataset, { cacheDirectory }: HubSettings): Promise<FoundDataset> {
  const name = datasetName(dataset);
  const { repository, revision } = name;
  const folder = repositoryFolder(cacheDirectory, { kind: datasetKind, name: repository });
  const commit = await commitOf(folder, revision);
  const record = commit === undefined ? undefined : await readDataRecord(folder, commit);
  if (commit === undefined || record === undefined) throw notPulled(name, { cacheDirectory, ...dataset });
  const { config, split, files } = onePart(chooseParts(record.parts, dataset));
  const directory = join(folder, 'snapshots', commit);
  for (const { path, sizeBytes } of files) {
    const info = await stat(join(directory, path)).catch(() => undefined);
    if (info?.size !== sizeBytes) throw notPulled(name, { cacheDirectory, config, split, file: path });
  }
  const id = pinnedName({ repository, commit });
  return { id, commit, config, split, directory, files: files.map(({ path }) => path) };
}

function notPulled(
  { repository, revision }: HubName,
  { cacheDirectory, config, split, file }: PartChoice & { readonly cacheDirectory: string; readonly file?: string },
) {
  const name = revision === 'main' ? repository : `${repository}@${revision}`;
  const options = [config && ` --config ${config}`, split && ` --split ${split}`].filter(Boolean).join('');
  return complaint({
    code: 'not_found',
    field: name,
    expected: `a data set that was pulled into ${cacheDirectory}`,
    got: file === undefined ? 'none of this name and revision' : `one without ${file}`,
    remedy: `run \`${datasetKind.pull} ${name}${options}\` on this machine, or await pullDataset(…) of the same`,
  });
}
