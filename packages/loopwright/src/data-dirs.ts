/** The data directories of a home folder, and a version that isn't in the one that was asked. */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { LoopwrightError } from '@loopwright/protocol';

export interface Looked {
  /** The data directory, or the URL of the server, that was asked. */
  readonly in: string;
  /** Data directories that were not looked into. */
  readonly others: readonly string[];
}

/**
 * `unknown_version` with the place that was asked and the others there are: a process that ran beside another saved into a directory of its own. Other errors are
 * what they were.
 */
export function withPlaces(error: unknown, { in: place, others }: Looked): unknown {
  if (!LoopwrightError.isInstance(error) || error.code !== 'unknown_version') return error;
  const { got = 'one that does not exist', remedy } = error.details;
  const elsewhere =
    others.length === 0
      ? undefined
      : `it may lie in another data directory (${others.join(', ')}): connect({ dataDir }), or loopwright serve --data and LOOPWRIGHT_URL`;
  const remedies = [remedy, elsewhere].filter((text) => text !== undefined).join('; ');
  return new LoopwrightError({
    code: error.code,
    message: [`${error.message} (asked: ${place})`, elsewhere].filter((text) => text !== undefined).join('; '),
    details: { ...error.details, got: `${got}, in ${place}`, ...(remedies === '' ? {} : { remedy: remedies }) },
    cause: error,
  });
}

/** The default data directories of a home folder that exist, `data` first. */
export async function dataDirsIn(home: string): Promise<string[]> {
  const names = await readdir(home).catch(() => []); // none there yet
  return names
    .filter((name) => /^data(-\d+)?$/.test(name))
    .sort((a, b) => a.length - b.length || a.localeCompare(b))
    .map((name) => join(home, name));
}
