/** What is to be exported: a saved version, an adapter or a model by path, or a base model by its name. */
import { access } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { adapterBaseModel } from '@loopwright/engine';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import { connect } from '../../connect.js';
import { dataDirsIn } from '../../embedded.js';
import { HubCache } from '../../hub/hub-cache.js';
import { installedModels } from '../../models.js';
import type { CommandContext } from '../context.js';

export interface ExportSource {
  /** Path of the whole model: the one that is exported, or the one that the adapter stands on. */
  readonly base: string;
  /** What the adapter's config is to call its base, or the name that a model was given by. */
  readonly baseName: string;
  /** PEFT directory. */
  readonly adapter?: string;
}

export interface FindSourceOptions {
  /** `--base`. */
  readonly base: string | undefined;
  readonly format: string;
  readonly context: CommandContext;
}

/** @throws `unknown_version`, `unknown_model`, `data_dir_in_use`; `invalid_argument` for an adapter that doesn't say its base */
export async function findSource(text: string, { base, format, context }: FindSourceOptions): Promise<ExportSource> {
  const directory = text.startsWith('arn:') ? await versionDirectory(text, context) : resolve(text);
  if (!(await isThere(join(directory, 'adapter_config.json')))) {
    // A version of full training is a whole model.
    if (text.startsWith('arn:')) return { base: directory, baseName: base ?? text };
    return { base: await modelPath(text, context), baseName: text };
  }
  const given = base !== undefined && (await isThere(resolve(base))) ? resolve(base) : base;
  const baseName = given ?? (await adapterBaseModel(directory));
  if (baseName === undefined) {
    throw complaint({
      field: 'base',
      expected: 'the base model of the adapter',
      got: 'none in its adapter_config.json',
      remedy: 'name it by --base',
    });
  }
  // Only the name is needed to write the adapter alone.
  return { base: format === 'peft' ? baseName : await modelPath(baseName, context), baseName, adapter: directory };
}

/** The path of a model by its path or name, as `baseModel` takes it. */
async function modelPath(text: string, { settings }: CommandContext): Promise<string> {
  if (await isThere(resolve(text))) return resolve(text);
  const installed = await installedModels({ folders: settings.modelFolders });
  const found = installed.find(({ id }) => id === text) ?? (await new HubCache(settings.hub.cacheDirectory).find(text));
  if (found !== undefined) return found.directory;
  throw complaint({
    code: 'unknown_model',
    field: 'model',
    expected: `a path, or one of ${installed.map(({ id }) => id).join(', ')}`,
    got: JSON.stringify(text.slice(0, 200)),
    remedy: 'see loopwright models; an adapter whose base lies elsewhere takes --base',
  });
}

/** The files of a saved version, from whichever data directory of the home folder has it. */
async function versionDirectory(arn: string, { settings }: CommandContext): Promise<string> {
  let missing: unknown;
  for (const dataDir of await dataDirsIn(settings.home)) {
    try {
      await using service = await connect({ dataDir });
      const directory = await service.versionDirectory(arn);
      if (directory !== undefined) return directory;
    } catch (error) {
      if (!LoopwrightError.isInstance(error)) throw error;
      if (error.code === 'data_dir_in_use') {
        throw new LoopwrightError({
          code: error.code,
          message: `${error.message}; or export the version by its directory, which loopwright models --saved and service.versionDirectory tell`,
          details: error.details,
          cause: error,
        });
      }
      missing = error;
    }
  }
  if (missing !== undefined) throw missing;
  throw complaint({
    code: 'unknown_version',
    field: 'model',
    expected: 'a version that was saved on this machine',
    got: `none of this name below ${settings.home}`,
    remedy: 'see loopwright models --saved',
  });
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
