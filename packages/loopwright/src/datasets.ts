/** Data sets for loops: files of this machine, and those of the hub that were pulled. */
import { join } from 'node:path';
import type { Dataset } from '@loopwright/loops';
import { type OpenDatasetOptions, openDataset as openFiles } from '@loopwright/loops/node';
import { readSettings } from './config.js';
import { findDataset, type HubDataset } from './hub/find-dataset.js';
import { type PullDatasetOptions, type PulledDataset, pullFromHub } from './hub/pull-dataset.js';

/**
 * Opens a file, several as one, or a split of a data set that was pulled from the hub. Rows are read when they are asked for.
 *
 * @param source paths that end in `.jsonl`, `.ndjson` (either may be gzipped, `.gz`), or `.parquet`; or the name of a data set of the hub,
 *   which is looked for in the cache that Hugging Face's tools share: nothing is downloaded
 * @throws `invalid_argument` for another ending, or a part that the data set doesn't have; `not_found`, saying how to pull it
 * @example
 * const data = await openDataset('train.jsonl');
 * for await (const { id, row, at } of data) console.log(id, at.line, Object.keys(row));
 * @example
 * await pullDataset({ hub: 'openai/gsm8k', config: 'main' }); // or: loopwright data pull openai/gsm8k --config main
 * const train = await openDataset({ hub: 'openai/gsm8k', config: 'main', split: 'train' });
 */
export async function openDataset(
  source: string | readonly string[] | HubDataset,
  options: OpenDatasetOptions = {},
): Promise<Dataset> {
  if (typeof source !== 'object' || !('hub' in source)) return openFiles(source, options);
  const { id, directory, files } = await findDataset(source, readSettings().hub);
  const names = new Map(files.map((file) => [join(directory, file), `${id}/${file}`]));
  return openFiles([...names.keys()], { ...options, nameOf: (path) => names.get(path) ?? path });
}

/**
 * Fetches a data set of the hub into the cache that Hugging Face's tools share: of a configuration, the split that is named or all of
 * them. What is there already isn't downloaded again. HF_TOKEN, HF_ENDPOINT, HF_HUB_CACHE and HF_HUB_OFFLINE count.
 *
 * @throws as `loopwright data pull` says: `not_found`, `model_gated`, `data_invalid`, `disk_full`, `connection_lost`, `cancelled`, …
 * @example await pullDataset({ hub: 'openai/gsm8k', config: 'main', split: 'train' });
 */
export function pullDataset(dataset: HubDataset, options: PullDatasetOptions = {}): Promise<PulledDataset> {
  return pullFromHub(dataset, { ...options, settings: readSettings().hub });
}
