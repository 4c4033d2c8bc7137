/** The groups of a step: taken from the pool as they come, filled up where some teach nothing, and handed on to be trained. */

import { spreadMetrics } from '../statistics/quantiles.js';
import { type Metrics, unionLength } from './grpo-metrics.js';
import type { GroupOrigin, Resolved } from './grpo-options.js';
import type { GroupPhase, GrpoTask, ReferenceScores } from './grpo-task.js';
import type { PooledGroup, RolloutPool } from './rollout-pool.js';

export interface CollectOptions<P, G> {
  readonly run: Resolved;
  readonly task: GrpoTask<P, G>;
  readonly pool: RolloutPool<P, G>;
  /** From 1. */
  readonly step: number;
  /** Optimizer steps so far. */
  readonly updates: number;
  /** Told of `groupsPerPass` groups that teach something as soon as they are there. */
  readonly onPart: (groups: readonly G[], reference: ReferenceScores | undefined) => void;
}

export interface Collected<G> {
  /** All that was sampled, in the order of problems, the groups that teach nothing included. */
  readonly groups: readonly (G & GroupOrigin)[];
  /** Groups that `onPart` was not told of. */
  readonly rest: readonly G[];
  /** Undefined when the step measures no distance. */
  readonly reference: ReferenceScores | undefined;
  readonly metrics: Metrics;
}

/**
 * Takes P groups; then, for as many rounds as are allowed, as many as teach nothing.
 *
 * @throws `cancelled`, and what the task throws
 * @see arXiv:2503.14476 (DAPO), section 3.2, for the refill
 */
export async function collectGroups<P, G>(options: CollectOptions<P, G>): Promise<Collected<G>> {
  const { run, task, pool, step, updates, onPart } = options;
  const start = run.now();
  const pooled: (PooledGroup<G> & { readonly group: G & GroupOrigin })[] = [];
  const inOrder = () => pooled.toSorted((a, b) => a.ticket.index - b.ticket.index);
  let part: PooledGroup<G>[] = [];
  for (let round = 0; round <= run.refillRounds; round++) {
    const missing = run.groupsPerStep - pooled.filter(({ group }) => task.teaches(group)).length;
    if (missing === 0) break;
    pool.ask({ step, count: missing, first: pooled.length });
    for (let i = 0; i < missing; i++) {
      const each = await pool.next();
      const { ticket, policy } = each;
      const origin = { problemIndex: ticket.index, policyStep: policy.step, age: updates - policy.updates };
      const known = { ...each, group: { ...each.group, ...origin } };
      pooled.push(known);
      if (task.teaches(known.group)) part.push(known);
      if (part.length < run.groupsPerPass) continue;
      onPart(groupsOf(part), scoresOf(part));
      part = [];
    }
    task.check(groupsOf(inOrder()));
  }
  const all = inOrder();
  const groups = all.map(({ group }) => group);
  const ages = groups.map(({ age }) => age);
  const { requeued, dropped } = pool.takeCounts();
  const rest = Number.isFinite(run.groupsPerPass) ? groupsOf(part) : groups;
  return {
    ...{ groups, rest, reference: scoresOf(all) },
    metrics: {
      'groups/refilled': groups.length - run.groupsPerStep,
      'groups/requeued': requeued,
      'groups/dropped': dropped,
      'staleness/mean': ages.reduce((sum, age) => sum + age, 0) / ages.length,
      ...spreadMetrics('staleness', ages),
      'staleness/max': Math.max(...ages),
      ...times(all),
      'time/wait_ms': run.now() - start,
    },
  };
}

function groupsOf<G>(pooled: readonly PooledGroup<G>[]): G[] {
  return pooled.toSorted((a, b) => a.ticket.index - b.ticket.index).map(({ group }) => group);
}

function scoresOf<G>(pooled: readonly PooledGroup<G>[]): ReferenceScores | undefined {
  const scored = pooled.flatMap(({ scores }) => (scores === undefined ? [] : [scores]));
  return scored.length === 0 ? undefined : new Map(scored.flatMap((scores) => [...scores]));
}

/** Milliseconds in which any of the groups was sampled, scored, judged. */
function times<G>(pooled: readonly PooledGroup<G>[]): Metrics {
  const spans = pooled.flatMap((each) => each.spans);
  const phases = new Set<GroupPhase>(spans.map(({ phase }) => phase));
  return Object.fromEntries(
    [...phases].map((phase) => [`time/${phase}_ms`, unionLength(spans.filter((span) => span.phase === phase))]),
  );
}
