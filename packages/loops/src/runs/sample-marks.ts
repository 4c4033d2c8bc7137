/** Which answers of a step are worth a look: the best, the worst, and the longest. */
import type { SampledRollouts } from './run-samples.js';

export const sampleMarks = ['best', 'worst', 'longest'] as const;
export type SampleMark = (typeof sampleMarks)[number];

type AnyRollout = SampledRollouts['rollouts'][number];

/** By rollout. Of equals the first is taken; what has no reward is neither best nor worst. */
export function marksOf(groups: readonly SampledRollouts[]): ReadonlyMap<AnyRollout, readonly SampleMark[]> {
  const all = groups.flatMap(({ rollouts }) => rollouts);
  const best = most(all, ({ reward }) => reward);
  const worst = most(all, ({ reward }) => (reward === undefined ? undefined : -reward));
  const longest = most(all, sampledTokens);
  const marks = new Map<AnyRollout, SampleMark[]>();
  for (const [mark, rollout] of Object.entries({ best, worst, longest })) {
    if (rollout !== undefined) marks.set(rollout, [...(marks.get(rollout) ?? []), mark as SampleMark]); // true: its keys are marks
  }
  return marks;
}

function most(rollouts: readonly AnyRollout[], of: (rollout: AnyRollout) => number | undefined) {
  let found: AnyRollout | undefined;
  let highest = Number.NEGATIVE_INFINITY;
  for (const rollout of rollouts) {
    const value = of(rollout);
    if (value === undefined || value <= highest) continue;
    [found, highest] = [rollout, value];
  }
  return found;
}

function sampledTokens(rollout: AnyRollout): number {
  if (!('turns' in rollout)) return rollout.sequence.tokens.length;
  return rollout.turns.reduce((sum, { sequence }) => sum + sequence.tokens.length, 0);
}
