/** The one module that reads the environment. */
import { homedir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';

/** What the environment says. */
export interface Settings {
  /** LOOPWRIGHT_URL: a server to use instead of an embedded one. */
  readonly url: string | undefined;
  /** LOOPWRIGHT_API_KEY: the key of that server. */
  readonly apiKey: string | undefined;
  /** LOOPWRIGHT_HOME, or `.loopwright` in the user's folder: saved versions, models and caches lie below it. */
  readonly home: string;
  /** LOOPWRIGHT_MODELS: folders with models, separated as in PATH; `models` in `home` by default. */
  readonly modelFolders: readonly string[];
  /** LOOPWRIGHT_DEBUG: print stacks of errors. */
  readonly debug: boolean;
}

/** Reads the environment; empty variables count as absent. */
export function readSettings(environment: Readonly<Record<string, string | undefined>> = process.env): Settings {
  const read = (name: string): string | undefined => {
    const value = environment[name]?.trim();
    return value === '' ? undefined : value;
  };
  const home = resolve(read('LOOPWRIGHT_HOME') ?? join(homedir(), '.loopwright'));
  const folders = read('LOOPWRIGHT_MODELS')
    ?.split(delimiter)
    .filter((folder) => folder !== '');
  return {
    url: read('LOOPWRIGHT_URL'),
    apiKey: read('LOOPWRIGHT_API_KEY'),
    home,
    modelFolders: (folders ?? [join(home, 'models')]).map((folder) => resolve(folder)),
    debug: read('LOOPWRIGHT_DEBUG') !== undefined && read('LOOPWRIGHT_DEBUG') !== '0',
  };
}
