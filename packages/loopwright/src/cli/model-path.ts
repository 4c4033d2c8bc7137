/** Where a model lies that a command names. */
import { access } from 'node:fs/promises';
import { resolve } from 'node:path';
import { complaint } from '@loopwright/protocol';
import { HubCache } from '../hub/hub-cache.js';
import { parseHubName } from '../hub/hub-name.js';
import { installedModels } from '../models.js';
import type { CommandContext } from './context.js';

/**
 * The path of a model by its path or name, as `baseModel` takes it.
 *
 * @param further what else may help where there is none
 * @throws `unknown_model`
 */
export async function modelPath(text: string, { settings }: CommandContext, further?: string): Promise<string> {
  if (await isThere(resolve(text))) return resolve(text);
  const installed = await installedModels({ folders: settings.modelFolders });
  const cache = new HubCache(settings.hub.cacheDirectory);
  const found = installed.find(({ id }) => id === text) ?? (await cache.find(text));
  if (found !== undefined) return found.directory;
  const remedy = parseHubName(text) === undefined ? 'see loopwright models' : `run \`loopwright models pull ${text}\``;
  throw complaint({
    code: 'unknown_model',
    field: 'model',
    expected: `a path, or one of ${installed.map(({ id }) => id).join(', ')}`,
    got: JSON.stringify(text.slice(0, 200)),
    remedy: further === undefined ? remedy : `${remedy}; ${further}`,
  });
}

export function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
