/** What a file system refuses to write, in the words of this product. */
import { complaint, diskFull, isNoSpace, LoopwrightError } from '@loopwright/protocol';

/** @returns `disk_full`, `invalid_argument` where the place can't be written to, or `internal` */
export function asWriteError(error: unknown, path: string): LoopwrightError {
  if (LoopwrightError.isInstance(error)) return error;
  const code = systemCode(error);
  if (isNoSpace(code)) return diskFull({ field: path, got: code, cause: error });
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS' || code === 'ENOTDIR' || code === 'ENOENT') {
    return complaint({
      field: path,
      expected: 'a place that this user may write to',
      got: code,
      remedy: 'choose another folder, or change its rights',
      cause: error,
    });
  }
  return new LoopwrightError({
    code: 'internal',
    message: `${path}: could not be written (${code ?? 'unknown error'})`,
    details: { field: path, ...(code === undefined ? {} : { got: code }) },
    cause: error,
  });
}

/** Such as `ENOENT`, where there is one. */
export function systemCode(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined;
  return typeof error.code === 'string' ? error.code : undefined;
}
