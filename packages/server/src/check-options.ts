/** Options of a server that no type can check, refused when it starts. */
import { complaint } from '@loopwright/protocol';

/** The longest that a timer waits. */
const maxSwapAfterMs = 2 ** 31 - 1;

/** @throws `invalid_argument` */
export function checkSwapAfter(swapAfterMs: number | null): void {
  if (swapAfterMs === null || (swapAfterMs >= 0 && swapAfterMs <= maxSwapAfterMs)) return;
  const [expected, remedy] = [`milliseconds from 0 to ${maxSwapAfterMs}`, 'give null to keep all sessions in memory'];
  throw complaint({ field: 'swapAfterMs', expected, got: String(swapAfterMs), remedy });
}

/** @throws `invalid_argument` */
export function checkMemoryLimit(maxMemoryBytes: number): void {
  if (maxMemoryBytes > 0 && Number.isFinite(maxMemoryBytes)) return;
  const [expected, remedy] = ['a number of bytes above 0', 'leave it out to allow nine tenths of the machine’s memory'];
  throw complaint({ field: 'maxMemoryBytes', expected, got: String(maxMemoryBytes), remedy });
}

/** @throws `invalid_argument` */
export function checkSaveTtl(saveTtlSeconds: number | null): void {
  if (saveTtlSeconds === null || (Number.isSafeInteger(saveTtlSeconds) && saveTtlSeconds > 0)) return;
  const [expected, remedy] = ['whole seconds from 1 on', 'give null to keep what is saved'];
  throw complaint({ field: 'saveTtlSeconds', expected, got: String(saveTtlSeconds), remedy });
}

/** @throws `invalid_argument` */
export function checkMaxRedo(maxRedoSeconds: number | null): void {
  if (maxRedoSeconds === null || (maxRedoSeconds >= 0 && Number.isFinite(maxRedoSeconds))) return;
  const [expected, remedy] = ['seconds from 0 on', 'give null to take no snapshots'];
  throw complaint({ field: 'maxRedoSeconds', expected, got: String(maxRedoSeconds), remedy });
}
