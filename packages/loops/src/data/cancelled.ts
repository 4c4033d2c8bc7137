/** Readings that their caller ends. */
import { complaint, LoopwrightError } from '@loopwright/protocol';

/** @throws `cancelled`, or the error that the caller gave as its reason */
export function throwIfCancelled(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) throw cancelled(signal);
}

/** What a reading fails with when its caller ends it. */
export function cancelled(signal: AbortSignal): LoopwrightError {
  const reason: unknown = signal.reason;
  if (LoopwrightError.isInstance(reason)) return reason;
  const fault = { field: 'signal', expected: 'that the caller lets the reading go on', got: 'an abort' };
  return complaint({ code: 'cancelled', ...fault, message: 'the reading was cancelled by the caller', cause: reason });
}
