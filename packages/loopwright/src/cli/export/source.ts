/** What is to be exported: a saved version, an adapter or a model by path, or a base model by its name. */
import { join, resolve } from 'node:path';
import { adapterBaseModel } from '@loopwright/engine';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import type { SavedVersion } from '@loopwright/server';
import { dataDirsIn } from '../../data-dirs.js';
import { loadServer } from '../../embedded.js';
import type { CommandContext } from '../context.js';
import { isThere, modelPath } from '../model-path.js';

export interface ExportSource extends AsyncDisposable {
  /** Path of the whole model: the one that is exported, or the one that the adapter stands on. */
  readonly base: string;
  /** What the adapter's config is to call its base, or the name that a model was given by. */
  readonly baseName: string;
  /** Whether it was trained from the base. */
  readonly isTuned: boolean;
  /** PEFT directory. */
  readonly adapter?: string;
}

export interface FindSourceOptions {
  /** `--base`. */
  readonly base: string | undefined;
  /** `--data`: where to look for a version; every data directory of the home folder by default. */
  readonly dataDir: string | undefined;
  readonly format: string;
  readonly context: CommandContext;
}

/**
 * Close it when done: the files of a version are a copy.
 *
 * @throws `unknown_version`, `unknown_model`, `data_dir_in_use`; `invalid_argument` for an adapter that doesn't say its base, or an ARN that stands in several data directories
 */
export async function findSource(text: string, options: FindSourceOptions): Promise<ExportSource> {
  const { format, context } = options;
  if (!text.startsWith('arn:')) return { ...(await pathSource(text, options)), [Symbol.asyncDispose]: async () => {} };
  const version = await savedVersion(text, options);
  const close = () => version[Symbol.asyncDispose]();
  try {
    const { directory, baseModel } = version;
    // A version of full training is a whole model.
    if (!(await isThere(join(directory, 'adapter_config.json'))))
      return { base: directory, baseName: baseModel, isTuned: true, [Symbol.asyncDispose]: close };
    // The base that the session was pinned to, not what its name means by now.
    const baseName = (await givenBase(options)) ?? baseModel;
    const path = await basePath(baseName, { format, context });
    return { base: path, baseName, isTuned: true, adapter: directory, [Symbol.asyncDispose]: close };
  } catch (error) {
    await close();
    throw error;
  }
}

const adapterRemedy = 'an adapter whose base lies elsewhere takes --base';

/** An adapter or a whole model by its path, or a model by its name. */
async function pathSource(
  text: string,
  options: FindSourceOptions,
): Promise<Omit<ExportSource, typeof Symbol.asyncDispose>> {
  const directory = resolve(text);
  if (!(await isThere(join(directory, 'adapter_config.json'))))
    return { base: await modelPath(text, options.context, adapterRemedy), baseName: text, isTuned: false };
  const baseName = (await givenBase(options)) ?? (await adapterBaseModel(directory));
  if (baseName === undefined) {
    throw complaint({
      field: 'base',
      expected: 'the base model of the adapter',
      got: 'none in its adapter_config.json',
      remedy: 'name it by --base',
    });
  }
  return { base: await basePath(baseName, options), baseName, isTuned: true, adapter: directory };
}

/** `--base`, of a path the absolute one. */
async function givenBase({ base }: FindSourceOptions): Promise<string | undefined> {
  return base !== undefined && (await isThere(resolve(base))) ? resolve(base) : base;
}

/** Where an adapter's base lies. To write the adapter alone, the name is enough. */
function basePath(
  baseName: string,
  { format, context }: Pick<FindSourceOptions, 'format' | 'context'>,
): string | Promise<string> {
  return format === 'peft' ? baseName : modelPath(baseName, context, adapterRemedy);
}

/** A saved version by its ARN, from the data directory of the home folder that has it. */
async function savedVersion(arn: string, { dataDir, context }: FindSourceOptions): Promise<SavedVersion> {
  const { openSavedVersion } = await loadServer();
  const { home } = context.settings;
  const directories = dataDir === undefined ? await dataDirsIn(home) : [resolve(dataDir)];
  const found: { readonly directory: string; readonly version: SavedVersion }[] = [];
  const close = () => Promise.all(found.map(({ version }) => version[Symbol.asyncDispose]()));
  let inUse: LoopwrightError | undefined;
  for (const directory of directories) {
    try {
      found.push({ directory, version: await openSavedVersion(directory, arn) });
    } catch (error) {
      if (LoopwrightError.isInstance(error) && error.code === 'data_dir_in_use') inUse = error;
      else if (!LoopwrightError.isInstance(error) || error.code !== 'unknown_version') {
        await close();
        throw error;
      }
    }
  }
  // Data directories of processes that ran at once count their versions apart, so that one ARN may stand in several.
  if (found.length > 1) {
    await close();
    throw complaint({
      field: 'model',
      expected: 'a version that one data directory has',
      got: `versions of this name in ${found.map(({ directory }) => directory).join(' and ')}`,
      remedy: 'name the directory by --data',
    });
  }
  const [only] = found;
  if (only !== undefined) return only.version;
  if (inUse !== undefined) {
    throw complaint({
      code: inUse.code,
      field: 'model',
      expected: 'a version in a data directory that no process works on',
      got: inUse.message,
      remedy: 'stop the server or loop that works there, then export',
      cause: inUse,
    });
  }
  throw complaint({
    code: 'unknown_version',
    field: 'model',
    expected: 'a version that was saved on this machine',
    got: `none of this name in ${directories.length === 0 ? home : directories.join(', ')}`,
    remedy: 'see loopwright models --saved',
  });
}
