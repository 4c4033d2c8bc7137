/** The groups of a step: drawn, sampled, scored, judged, and filled up where some teach nothing. */
import { mixSeed, type Random } from '../random.js';
import type { Sampler } from './clients.js';
import type { GrpoReference, Resolved } from './grpo-options.js';
import type { GrpoTask, ReferenceScores } from './grpo-task.js';
import type { Scope } from './scope.js';

export interface CollectOptions<P, G> {
  readonly run: Resolved;
  readonly task: GrpoTask<P, G>;
  readonly sampler: Sampler;
  readonly random: Random;
  readonly scope: Scope;
  /** From 1. */
  readonly step: number;
  /** Milliseconds since the last call. */
  readonly clock: () => number;
}

export interface Collected<G> {
  /** All that was sampled, the groups that teach nothing included. */
  readonly groups: readonly G[];
  /** Undefined when the step measures no distance. */
  readonly reference: ReferenceScores | undefined;
  readonly times: Readonly<Record<string, number>>;
}

/**
 * Draws P problems; then, for as many rounds as are allowed, as many as groups teach nothing.
 *
 * @throws `cancelled`, and what the task throws
 * @see arXiv:2503.14476 (DAPO), section 3.2, for the refill
 */
export async function collectGroups<P, G>({
  run,
  task,
  sampler,
  random,
  scope,
  step,
  clock,
}: CollectOptions<P, G>): Promise<Collected<G>> {
  const groups: G[] = [];
  const scores = new Map<object, readonly number[]>();
  const times: Record<string, number> = {};
  const lap = (name: string): void => {
    times[name] = (times[name] ?? 0) + clock();
  };
  const reference = isMeasured(run, step) ? { scorer: run.reference.scorer, scores } : undefined;
  for (let round = 0; round <= run.refillRounds; round++) {
    const missing = run.groupsPerStep - groups.filter((group) => task.teaches(group)).length;
    if (missing === 0) break;
    const problems = Array.from({ length: missing }, () => task.draw(random));
    const first = groups.length;
    const seedOf = (group: number): number => mixSeed(run.seed, step, first + group);
    const earlier = [...groups];
    groups.push(...(await task.round(problems, { sampler, scope, seedOf, earlier, lap, reference })));
  }
  return { groups, reference: reference === undefined ? undefined : scores, times };
}

function isMeasured(run: Resolved, step: number): run is Resolved & { readonly reference: GrpoReference } {
  return run.reference !== undefined && (step - 1) % run.everySteps === 0;
}
