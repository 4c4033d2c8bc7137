/** What the file system refused in the cache, as a person can mend it. */
import { complaint, diskFull, isNoSpace, LoopwrightError } from '@loopwright/protocol';

export function asCacheError(error: unknown, cacheDirectory: string): unknown {
  if (LoopwrightError.isInstance(error)) return error;
  const { code, path = cacheDirectory } = error as NodeJS.ErrnoException; // only compared and shown
  if (isNoSpace(code)) return diskFull({ field: path, got: code, cause: error });
  if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS' && code !== 'ENOTDIR') return error;
  return complaint({
    field: 'HF_HUB_CACHE',
    expected: 'a folder that this user may write to',
    got: `${path} (${code})`,
    remedy: 'set HF_HUB_CACHE to a folder of yours, or mend the rights of this one',
    cause: error,
  });
}
