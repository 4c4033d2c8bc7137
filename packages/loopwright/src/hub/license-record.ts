/** Who accepted which licence, and when: a small file beside the snapshots of a model. */
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { hostname, userInfo } from 'node:os';
import { join } from 'node:path';
import { writeJsonAtomically } from '@loopwright/engine';
import type { License } from './hub-client.js';

export interface LicenseRecord {
  /** `org/name`. */
  readonly model: string;
  readonly commit: string;
  readonly license: License;
  /** User and machine, such as `ada@workstation`. */
  readonly acceptedBy: string;
  /** ISO 8601, in UTC. */
  readonly acceptedAt: string;
}

/** Within the folder of the repository; tools that share the cache look only at folders that they know. */
const folder = 'license-acceptances';

export interface Acceptance {
  readonly model: string;
  readonly commit: string;
  readonly license: License;
  readonly now?: () => number;
}

/** Records that this user accepts the licence. @param repository the folder of the repository */
export async function recordAcceptance(
  repository: string,
  { model, commit, license, now = Date.now }: Acceptance,
): Promise<LicenseRecord> {
  const record: LicenseRecord = {
    model,
    commit,
    license,
    acceptedBy: `${userName()}@${hostname()}`,
    acceptedAt: new Date(now()).toISOString(),
  };
  const path = join(repository, folder, `${commit}.json`);
  await mkdir(join(repository, folder), { recursive: true });
  await writeJsonAtomically(path, record);
  return record;
}

/** Whether the same licence was accepted here before, for this commit or another. */
export async function isAccepted(repository: string, { id, name, link }: License): Promise<boolean> {
  const directory = join(repository, folder);
  const names = (await readdir(directory).catch(() => [])).filter((file) => file.endsWith('.json'));
  for (const file of names) {
    const record = await readRecord(join(directory, file));
    if (record !== undefined && record.id === id && record.name === name && record.link === link) return true;
  }
  return false;
}

/** The licence of a record; undefined for a file that is none. */
async function readRecord(path: string): Promise<License | undefined> {
  try {
    const { license } = JSON.parse(await readFile(path, 'utf8')) as Partial<LicenseRecord>; // compared member by member
    return license;
  } catch {
    return undefined;
  }
}

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'unknown'; // an account without a name, as in some containers
  }
}
