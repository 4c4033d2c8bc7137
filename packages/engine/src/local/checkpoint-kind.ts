/** What was saved into a directory: an adapter or a whole model. */
import { readdir } from 'node:fs/promises';
import { complaint } from '@loopwright/protocol';

/**
 * Recognised by the config file, which every save writes last.
 *
 * @throws `unknown_version` when there is no such directory, `model_invalid` when nothing was saved there completely
 */
export async function checkpointKind(directory: string): Promise<'adapter' | 'model'> {
  let names: readonly string[];
  try {
    names = await readdir(directory);
  } catch (cause) {
    throw complaint({
      code: 'unknown_version',
      field: 'version',
      expected: 'a directory of saved weights',
      got: 'none',
      remedy: 'save the weights again; the version may have expired',
      cause,
    });
  }
  if (names.includes('adapter_config.json')) return 'adapter';
  if (names.includes('config.json')) return 'model';
  throw complaint({
    code: 'model_invalid',
    field: 'version',
    expected: 'adapter_config.json or config.json beside the weights',
    got: 'neither',
    remedy: 'the save did not end; load another version',
  });
}
