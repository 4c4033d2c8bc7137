/** What supervised training keeps between two steps, besides weights and the number of the step. */
import * as z from 'zod/mini';
import type { JsonValue } from '../data/row.js';
import { type GuardState, guardState } from '../guard/state.js';
import type { SftPlace } from './sft-batches.js';

export interface SftState extends SftPlace {
  /** Loss of the held-out examples before the first step; null without such examples. */
  readonly before: number | null;
  /** Absent where the guard is off, and in checkpoints from before it was kept. */
  readonly guard?: GuardState;
}

const count = z.int().check(z.minimum(0));
const sftState = z.object({
  epoch: count,
  offset: count,
  before: z.nullable(z.number()),
  guard: z.exactOptional(guardState),
});

export function readSftState(state: JsonValue): SftState | undefined {
  return sftState.safeParse(state).data;
}
