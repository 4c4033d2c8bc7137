/** The numbers of a step, named `group/name`. Numbers only: nothing of what was sampled. */
import type { ForwardBackwardOutput, OptimStepOutput, SampledTokens } from '@loopwright/client';
import type { DatumFor } from '@loopwright/protocol';
import type { RlLossName } from '../datums/rl-datum.js';
import type { Problem } from '../environments/environment.js';
import { isDead, mean, populationStd } from '../statistics/advantages.js';
import { klK3 } from '../statistics/kl.js';
import type { Rollout, RolloutGroup } from './rollouts.js';

/** By name; only finite numbers. What could not be measured is left out. */
export type Metrics = Readonly<Record<string, number>>;

/** Rewards of the answers that could be graded. */
export function rewardsOf(rollouts: readonly Rollout[]): number[] {
  return rollouts.flatMap(({ grade }) => (grade.status === 'grader_error' ? [] : [grade.reward]));
}

/**
 * Of what was sampled: `reward/mean`, `reward/std_within_group` (mean of the groups' population standard deviations),
 * `groups/dead` (graded, all rewards equal), `groups/ungraded`, `grade/unparsed_share`, `grade/errors`,
 * `completion/length_mean` (tokens), `completion/truncated_share`, `tokens/sampled`, `kl/base` (mean of k3 over sampled
 * tokens, in nats).
 */
export function rolloutMetrics(
  groups: readonly RolloutGroup<Problem>[],
  reference: ReadonlyMap<SampledTokens, readonly number[]> | undefined,
): Metrics {
  const rollouts = groups.flatMap((group) => group.rollouts);
  const rewards_PG = groups.map((group) => rewardsOf(group.rollouts));
  const graded = rewards_PG.filter((rewards) => rewards.length > 0);
  const share = (test: (rollout: Rollout) => boolean): number => rollouts.filter(test).length / rollouts.length;
  const kl = rollouts.flatMap(({ sequence }) => {
    const scores = reference?.get(sequence);
    return scores === undefined ? [] : klK3(sequence.logprobs, scores);
  });
  return finite({
    'reward/mean': mean(rewards_PG.flat()),
    'reward/std_within_group': mean(graded.map(populationStd)),
    'groups/dead': graded.filter(isDead).length,
    'groups/ungraded': groups.length - graded.length,
    'grade/unparsed_share': share(({ grade }) => grade.status === 'unparsed'),
    'grade/errors': rollouts.filter(({ grade }) => grade.status === 'grader_error').length,
    'completion/length_mean': mean(rollouts.map(({ sequence }) => sequence.tokens.length)),
    'completion/truncated_share': share(({ sequence }) => sequence.stopReason === 'length'),
    'tokens/sampled': rollouts.reduce((sum, { sequence }) => sum + sequence.tokens.length, 0),
    'kl/base': mean(kl),
  });
}

/**
 * Of the step: `ratio/mean|min|max` (p/q of the sampled tokens before the update: 1 up to rounding when the sampler is
 * fresh), `tokens/trained`, and what engine and optimizer report.
 */
export function trainingMetrics(
  data: readonly DatumFor<RlLossName>[],
  pass: ForwardBackwardOutput,
  update: OptimStepOutput,
): Metrics {
  const ratios = data.flatMap(({ lossFnInputs }, i) => {
    const logprobs = pass.outputs[i]?.logprobs ?? [];
    return Array.from<number | readonly number[], number[]>(lossFnInputs.weights, (weight, t) =>
      Number(weight) === 0 ? [] : [Math.exp((logprobs[t] ?? Number.NaN) - Number(lossFnInputs.logprobs[t]))],
    ).flat();
  });
  return finite({
    ...pass.metrics,
    ...update.metrics,
    'ratio/mean': mean(ratios),
    'ratio/min': ratios.reduce((low, ratio) => Math.min(low, ratio), Number.POSITIVE_INFINITY),
    'ratio/max': ratios.reduce((high, ratio) => Math.max(high, ratio), Number.NEGATIVE_INFINITY),
    'tokens/trained': pass.trainingTokens,
  });
}

function finite(metrics: Metrics): Metrics {
  return Object.fromEntries(Object.entries(metrics).filter(([, value]) => Number.isFinite(value)));
}
