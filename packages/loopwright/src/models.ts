/** Which base models there are on this machine: the bundled one, and those in the model folders. */
import { access, readdir, stat } from 'node:fs/promises';
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
 * Model directories (with a config.json) and GGUF files in a folder, `name` and `owner/name` deep, by these names, of a file without
 * `.gguf`. A folder that isn't there holds none.
 */
export async function findModels(folder: string): Promise<InstalledModel[]> {
  const found: InstalledModel[] = [];
  for (const { name, directory, isModel } of await entriesOf(folder)) {
    if (isModel) found.push({ id: name, directory });
    else {
      for (const inner of await entriesOf(directory)) {
        if (inner.isModel) found.push({ id: `${name}/${inner.name}`, directory: inner.directory });
      }
    }
  }
  return found;
}

interface Entry {
  readonly name: string;
  readonly directory: string;
  readonly isModel: boolean;
}

/** Folders and GGUF files, by name. */
async function entriesOf(folder: string): Promise<Entry[]> {
  let names: string[];
  try {
    names = (await readdir(folder)).sort();
  } catch {
    return []; // not there, not a folder, or not ours to read: no models
  }
  const entries = await Promise.all(
    names.map(async (name): Promise<Entry | undefined> => {
      const directory = join(folder, name);
      // Links are followed: models are large and often lie elsewhere.
      const info = await stat(directory).catch(() => undefined);
      if (info?.isDirectory()) return { name, directory, isModel: await hasConfig(directory) };
      const isGguf = info?.isFile() === true && name.endsWith('.gguf');
      return isGguf ? { name: name.slice(0, -'.gguf'.length), directory, isModel: true } : undefined;
    }),
  );
  return entries.filter((entry) => entry !== undefined);
}

async function hasConfig(directory: string): Promise<boolean> {
  return access(join(directory, 'config.json')).then(
    () => true,
    () => false,
  );
}

function checkedPath(id: string, directory: unknown): string {
  if (typeof directory === 'string' && directory !== '') return directory;
  throw complaint({
    field: `models.${id}`,
    expected: 'the path of a model directory or GGUF file',
    got: directory === '' ? 'an empty string' : typeof directory,
  });
}
