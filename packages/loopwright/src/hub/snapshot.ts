/** What a model directory of the cache holds: other tools fetch file by file, so it may not be whole. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { complaint } from '@loopwright/protocol';

export const singleWeightsFile = 'model.safetensors';
export const weightsIndexFile = 'model.safetensors.index.json';

/** Above any published index (the largest is a few MB). */
const maxIndexBytes = 64 * 1024 * 1024;

/** The name of a file that a model lacks to be loaded; undefined when it is whole. Contents are not looked at. */
export async function missingFile(directory: string): Promise<string | undefined> {
  if (!(await hasFile(directory, 'config.json'))) return 'config.json';
  if (await hasFile(directory, singleWeightsFile)) return undefined;
  if (!(await hasFile(directory, weightsIndexFile))) return singleWeightsFile;
  let shards: readonly string[];
  try {
    shards = await readShardNames(join(directory, weightsIndexFile));
  } catch {
    return weightsIndexFile; // there, but no index
  }
  for (const shard of shards) if (!(await hasFile(directory, shard))) return shard;
  return undefined;
}

/** Names of the weight files that an index lists, sorted. @throws `model_invalid` */
export async function readShardNames(path: string): Promise<readonly string[]> {
  const invalid = (got: string, cause?: unknown) =>
    complaint({
      code: 'model_invalid',
      field: weightsIndexFile,
      expected: 'tensor names with their files',
      got,
      cause,
    });
  const { size } = await stat(path);
  if (size > maxIndexBytes) throw invalid(`${size} bytes`);
  let value: unknown;
  try {
    value = JSON.parse(await readFile(path, 'utf8'));
  } catch (cause) {
    throw invalid(`${size} bytes that are no JSON`, cause);
  }
  const map = isRecord(value) ? value.weight_map : undefined;
  if (!isRecord(map)) throw invalid('no weight_map');
  const names = [...new Set(Object.values(map))];
  // Names come from outside: one that leads out of the directory is refused, not followed.
  const isShard = (name: unknown): name is string =>
    typeof name === 'string' && /^\w[\w.-]*\.safetensors$/.test(name) && name.length <= 255;
  if (names.length === 0 || !names.every(isShard)) throw invalid('names that are not of safetensors files beside it');
  return names.sort();
}

/** Whether the config is of a model that writes text from left to right; other models are in caches as well. */
export async function isLanguageModel(directory: string): Promise<boolean> {
  try {
    const config: unknown = JSON.parse(await readFile(join(directory, 'config.json'), 'utf8'));
    const names = isRecord(config) ? config.architectures : undefined;
    return Array.isArray(names) && names.some((name) => typeof name === 'string' && name.endsWith('ForCausalLM'));
  } catch {
    return false;
  }
}

async function hasFile(directory: string, name: string): Promise<boolean> {
  const info = await stat(join(directory, name)).catch(() => undefined);
  return info?.isFile() === true;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
