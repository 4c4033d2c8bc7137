/** How a saved adapter is sampled from, told in a file beside it: part of the version, so that it gives the same bits after any restart. Other tools don't read it. */
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { complaint, type SamplerPath, samplerPaths } from '@loopwright/protocol';
import { asWriteError, type WriteOptions, writeJsonAtomically } from './atomic-file.js';
import { readJsonObject } from './model-directory.js';

const fileName = 'loopwright.json';

/**
 * Writes nothing for `apart`, which is what a directory without the file stands for.
 *
 * @param directory made where there is none
 * @returns the names of the files written
 * @throws `disk_full`, `cancelled`
 */
export async function writeSamplerPath(
  directory: string,
  samplerPath: SamplerPath,
  options?: WriteOptions,
): Promise<readonly string[]> {
  if (samplerPath === 'apart') return [];
  try {
    await mkdir(directory, { recursive: true });
  } catch (error) {
    throw asWriteError(error, directory);
  }
  await writeJsonAtomically(join(directory, fileName), { samplerPath }, options);
  return [fileName];
}

/** @throws `model_invalid` for a file that says something else */
export async function readSamplerPath(directory: string): Promise<SamplerPath> {
  if (!(await readdir(directory)).includes(fileName)) return 'apart';
  const { samplerPath } = await readJsonObject(join(directory, fileName));
  const known = samplerPaths.find((path) => path === samplerPath);
  if (known !== undefined) return known;
  throw complaint({
    code: 'model_invalid',
    field: `${fileName}: samplerPath`,
    expected: samplerPaths.join(' or '),
    got: typeof samplerPath === 'string' ? samplerPath.slice(0, 40) : typeof samplerPath,
    remedy: 'save the weights again',
  });
}
