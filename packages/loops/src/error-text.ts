/** What may be told of an error: the message of another library, or of a user's code, may hold content or secrets. */
import { LoopwrightError } from '@loopwright/protocol';

/** The message of an error of Loopwright; of any other its class alone, and of what is no error its type. */
export function errorText(error: unknown): string {
  if (LoopwrightError.isInstance(error)) return error.message;
  return error instanceof Error ? error.name : typeof error;
}
