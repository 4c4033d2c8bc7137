/** What a GRPO loop keeps between two steps, besides weights and the number of the step. */
import * as z from 'zod/mini';
import type { JsonValue } from '../data/row.js';
import { type GuardState, guardState } from '../guard/state.js';
import type { SavedTicket, StreamState } from './problem-stream.js';

export interface GrpoState {
  /** Of the problems: which comes next, and the random stream that they are drawn from. */
  readonly stream: StreamState;
  /** Problems that were taken and not trained on yet: those under way where sampling overlaps training. */
  readonly pending: readonly SavedTicket[];
  /** Optimizer steps so far. */
  readonly updates: number;
  /** The step that made the weights; 0 before the first. */
  readonly policyStep: number;
  readonly skippedSteps: number;
  /** Absent where the guard is off, and in checkpoints from before it was kept. */
  readonly guard?: GuardState;
}

const count = z.int().check(z.minimum(0));
const ticket = z.object({
  index: count,
  place: z.object({ step: count, first: count, offset: count }),
  attempt: count,
  drawnFrom: z.int(),
});
const grpoState = z.object({
  stream: z.object({ next: count, random: z.int() }),
  pending: z.array(ticket),
  updates: count,
  policyStep: count,
  skippedSteps: count,
  guard: z.exactOptional(guardState),
});

export function readGrpoState(state: JsonValue): GrpoState | undefined {
  return grpoState.safeParse(state).data;
}
