/** The one module that reads the environment. */
import { homedir } from 'node:os';
import { delimiter, join, resolve } from 'node:path';
import type { HubSettings } from './hub/hub-settings.js';

/** Of an MLflow server. */
export interface MlflowSettings {
  /** MLFLOW_TRACKING_URI */
  readonly uri: string | undefined;
  /** MLFLOW_EXPERIMENT_NAME */
  readonly experiment: string | undefined;
  /** MLFLOW_TRACKING_TOKEN */
  readonly token: string | undefined;
  /** MLFLOW_TRACKING_USERNAME */
  readonly username: string | undefined;
  /** MLFLOW_TRACKING_PASSWORD */
  readonly password: string | undefined;
}

/** What the environment says. */
export interface Settings {
  /** LOOPWRIGHT_URL: a server to use instead of an embedded one. */
  readonly url: string | undefined;
  /** LOOPWRIGHT_API_KEY: the key of that server. */
  readonly apiKey: string | undefined;
  /** LOOPWRIGHT_HOME, or `.loopwright` in the user's folder: saved versions, models and caches lie below it. */
  readonly home: string;
  /** LOOPWRIGHT_DEVICE: what embedded engines compute on, checked where one is started. */
  readonly device: string | undefined;
  /** LOOPWRIGHT_MODELS: folders with models, separated as in PATH; `models` in `home` by default. */
  readonly modelFolders: readonly string[];
  /** The model hub, by the variables that its other tools read. */
  readonly hub: HubSettings;
  /** An MLflow server, by the variables that its own client reads. */
  readonly mlflow: MlflowSettings;
  /** LOOPWRIGHT_REPEAT_OF: the run that this program repeats; set by `loopwright runs repeat`. */
  readonly repeatOf: string | undefined;
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
    device: read('LOOPWRIGHT_DEVICE'),
    modelFolders: (folders ?? [join(home, 'models')]).map((folder) => resolve(folder)),
    hub: readHubSettings(read),
    mlflow: {
      uri: read('MLFLOW_TRACKING_URI'),
      experiment: read('MLFLOW_EXPERIMENT_NAME'),
      token: read('MLFLOW_TRACKING_TOKEN'),
      username: read('MLFLOW_TRACKING_USERNAME'),
      password: read('MLFLOW_TRACKING_PASSWORD'),
    },
    repeatOf: read('LOOPWRIGHT_REPEAT_OF'),
    debug: read('LOOPWRIGHT_DEBUG') !== undefined && read('LOOPWRIGHT_DEBUG') !== '0',
  };
}

type Read = (name: string) => string | undefined;

function readHubSettings(read: Read): HubSettings {
  const home = read('HF_HOME') ?? join(read('XDG_CACHE_HOME') ?? join(homedir(), '.cache'), 'huggingface');
  return {
    endpoint: (read('HF_ENDPOINT') ?? 'https://huggingface.co').replace(/\/+$/, ''),
    token: read('HF_TOKEN'),
    offline: /^(1|true|yes|on)$/i.test(read('HF_HUB_OFFLINE') ?? ''),
    cacheDirectory: resolve(inHome(read('HF_HUB_CACHE') ?? read('HUGGINGFACE_HUB_CACHE') ?? join(home, 'hub'))),
  };
}

/** A path whose `~` no shell has replaced. */
function inHome(path: string): string {
  return path.replace(/^~(?=\/|$)/, homedir());
}
