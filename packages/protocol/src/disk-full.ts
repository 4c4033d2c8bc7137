/** A disk without room: how the system says it, and the one error that tells it to a person. */
import { complaint, type LoopwrightError } from './errors.js';

/** No space, no quota, or a file beyond what the process or the file system allows. */
const noSpaceCodes = new Set(['ENOSPC', 'EDQUOT', 'EFBIG']);

/** Whether a code of the system (`ENOSPC` and its like) means that there is no room. */
export function isNoSpace(systemCode: string | undefined): systemCode is string {
  return systemCode !== undefined && noSpaceCodes.has(systemCode);
}

export interface DiskFull {
  /** What could not be written: a path, or `dataDir`. */
  readonly field: string;
  /** Room that would do; `free disk space` by default. */
  readonly expected?: string;
  /** The code of the system, or the bytes that are free. */
  readonly got: string;
  readonly cause?: unknown;
}

/** `disk_full`, by whoever failed to write. What throws it has left nothing half written behind. */
export function diskFull({ expected = 'free disk space', ...rest }: DiskFull): LoopwrightError {
  return complaint({ code: 'disk_full', expected, ...rest });
}
