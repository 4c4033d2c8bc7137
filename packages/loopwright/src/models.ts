/** Which base models there are on this machine: the bundled one, and those in the model folders. */
import { access, readdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { complaint } from '@loopwright/protocol';
import type { InstalledModel } from '@loopwright/server';
import { tinyModel } from '@loopwright/tiny';

/** The model that comes with the product. */
export const bundledModel: InstalledModel = tinyModel;

export interface InstalledModelsOptions {
  /** Directories by id; these go first. */
  readonly models?: Readonly<Record<string, string>>;
  readonly folders: readonly string[];
}

/** Named models, the bundled one, and what the folders hold; of two with one id the first counts. */
export async function installedModels({ models = {}, folders }: InstalledModelsOptions): Promise<InstalledModel[]> {
  const named = Object.entries(models).map(([id, directory]) => ({
    id,
    directory: resolve(checkedPath(id, directory)),
  }));
  const found = (await Promise.all(folders.map(findModels))).flat();
  const byId = new Map<string, InstalledModel>();
  for (const model of [...named, bundledModel, ...found]) if (!byId.has(model.id)) byId.set(model.id, model);
  return [...byId.values()];
}

/**
 * Model directories (with a config.json) in a folder, `name` and `owner/name` deep, by these names. A folder that isn't
 * there holds none.
 */
export async function findModels(folder: string): Promise<InstalledModel[]> {
  const found: InstalledModel[] = [];
  for (const name of await foldersIn(folder)) {
    const directory = join(folder, name);
    if (await isModel(directory)) found.push({ id: name, directory });
    else {
      for (const inner of await foldersIn(directory)) {
        const nested = join(directory, inner);
        if (await isModel(nested)) found.push({ id: `${name}/${inner}`, directory: nested });
      }
    }
  }
  return found;
}

async function foldersIn(folder: string): Promise<string[]> {
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    // Links are followed: models are large and often lie elsewhere.
    return entries
      .filter((entry) => entry.isDirectory() || entry.isSymbolicLink())
      .map((entry) => entry.name)
      .sort();
  } catch {
    return []; // not there, not a folder, or not ours to read: no models
  }
}

async function isModel(directory: string): Promise<boolean> {
  return access(join(directory, 'config.json')).then(
    () => true,
    () => false,
  );
}

function checkedPath(id: string, directory: unknown): string {
  if (typeof directory === 'string' && directory !== '') return directory;
  throw complaint({
    field: `models.${id}`,
    expected: 'the path of a model directory',
    got: directory === '' ? 'an empty string' : typeof directory,
  });
}
