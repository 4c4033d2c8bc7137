/** Sessions without work wait on the disk: after which time, and what is told of it. */
import type { WireError } from '@loopwright/protocol';

export const defaultSwapAfterMs: number = 10 * 60 * 1000;

/** A session that went to the disk or came back, or could not go and stays in memory: told once until one can. */
export type SwapEvent =
  | { readonly type: 'swap-out' | 'swap-in'; readonly session: string; readonly sizeBytes: number; readonly ms: number }
  | { readonly type: 'swap-failed'; readonly session: string; readonly error: WireError };
