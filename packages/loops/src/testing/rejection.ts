import { LoopwrightError } from '@loopwright/protocol';

/** The error of ours that a promise is refused with. */
export async function rejection(promise: Promise<unknown>): Promise<LoopwrightError> {
  const error: unknown = await promise.then(
    () => new Error('nothing was refused'),
    (reason: unknown) => reason,
  );
  if (LoopwrightError.isInstance(error)) return error;
  throw error;
}
