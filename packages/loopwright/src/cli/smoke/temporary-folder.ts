/** Where a smoke test has its server and its run: a folder of the system's temporary files, with room for them. */
import { mkdtemp, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { complaint } from '@loopwright/protocol';
import { bytesText } from '../text.js';

/** Bytes: a server without room waits for it, as it should in a run and should not here. The recipe guess-number uses 26 MB. */
const neededBytes = 64_000_000;

/** @throws `disk_full`; `invalid_argument` where it can't be written to */
export async function temporaryFolder(): Promise<string> {
  const parent = tmpdir();
  const folder = await mkdtemp(join(parent, 'loopwright-smoke-')).catch((cause: unknown) => {
    throw complaint({
      field: parent,
      expected: 'a folder for temporary files that this user may write to',
      got: cause instanceof Error && 'code' in cause ? String(cause.code) : 'another',
      remedy: 'name another by TMPDIR',
      cause,
    });
  });
  const { bavail, bsize } = await statfs(folder);
  const free = bavail * bsize;
  if (free >= neededBytes) return folder;
  await rm(folder, { recursive: true });
  throw complaint({
    code: 'disk_full',
    field: parent,
    expected: `${bytesText(neededBytes)} free`,
    got: bytesText(free),
    remedy: 'free some space, or name another folder by TMPDIR',
  });
}
