/** The numbers of a step, named `group/name`. Numbers only: nothing of what was sampled. */
import type { ForwardBackwardOutput, OptimStepOutput, SampledTokens } from '@loopwright/client';
import type { DatumFor } from '@loopwright/protocol';
import type { RlLossName } from '../datums/rl-datum.js';
import { type Grade, isFailure, type Problem } from '../environments/environment.js';
import { isDead, mean, populationStd } from '../statistics/advantages.js';
import { klK3 } from '../statistics/kl.js';
import { spreadMetrics } from '../statistics/quantiles.js';
import type { RolloutGroup } from './rollouts.js';

/** By name; only finite numbers. What could not be measured is left out. */
export type Metrics = Readonly<Record<string, number>>;

/** Rewards of the answers that have one: graded, or set to the floor where grading failed. */
export function rewardsOf(rollouts: readonly { readonly reward?: number }[]): number[] {
  return rollouts.flatMap(({ reward }) => (reward === undefined ? [] : [reward]));
}

/**
 * Of what was sampled: `reward/mean`, `reward/std_within_group` (mean of the groups' population standard deviations),
 * `groups/dead` (all rewards equal), `groups/ungraded` (no reward at all), `grade/unparsed_share`, `grade/errors`,
 * `grade/timeouts`, `grade/excluded` (of both, those that were left out), `reward/<component>` (mean of its scores, before
 * its weight), `grade/<component>_failed` (where any did),
 * `completion/length_mean` (tokens) and `completion/length_p05|p50|p95`, `completion/truncated_share`, `tokens/sampled`, `kl/base` (mean of k3 over sampled
 * tokens, in nats).
 */
export function rolloutMetrics(
  groups: readonly RolloutGroup<Problem>[],
  reference: ReadonlyMap<object, readonly number[]> | undefined,
): Metrics {
  const answers = groups.flatMap(({ rollouts }) => rollouts.map(({ sequence }) => sequence));
  const kl = answers.flatMap((sequence) => {
    const scores = reference?.get(sequence);
    return scores === undefined ? [] : klK3(sequence.logprobs, scores);
  });
  return judgedMetrics(groups, { answers, kl });
}

interface Judged {
  readonly grade?: Grade;
  readonly reward?: number;
}

interface Sampled {
  /** All that was sampled for the rollouts. */
  readonly answers: readonly Pick<SampledTokens, 'tokens' | 'stopReason'>[];
  /** k3 of sampled tokens. */
  readonly kl: readonly number[];
}

/** What is measured of single answers and of episodes alike. */
export function judgedMetrics(
  groups: readonly { readonly rollouts: readonly Judged[] }[],
  { answers, kl }: Sampled,
): Metrics {
  const rollouts = groups.flatMap((group) => group.rollouts);
  const rewards_PG = groups.map((group) => rewardsOf(group.rollouts));
  const graded = rewards_PG.filter((rewards) => rewards.length > 0);
  const lengths = answers.map(({ tokens }) => tokens.length);
  const count = (test: (rollout: Judged) => boolean): number => rollouts.filter(test).length;
  return finite({
    ...componentMetrics(rollouts),
    'reward/mean': mean(rewards_PG.flat()),
    'reward/std_within_group': mean(graded.map(populationStd)),
    'groups/dead': graded.filter(isDead).length,
    'groups/ungraded': groups.length - graded.length,
    'grade/unparsed_share': count(({ grade }) => grade?.status === 'unparsed') / rollouts.length,
    'grade/errors': count(({ grade }) => grade?.status === 'grader_error'),
    'grade/timeouts': count(({ grade }) => grade?.status === 'timeout'),
    'grade/excluded': count(({ reward }) => reward === undefined),
    'completion/length_mean': mean(lengths),
    ...spreadMetrics('completion/length', lengths),
    'completion/truncated_share': answers.filter(({ stopReason }) => stopReason === 'length').length / answers.length,
    'tokens/sampled': lengths.reduce((sum, length) => sum + length, 0),
    'kl/base': mean(kl),
  });
}

/**
 * Of the step: `ratio/mean|min|max|p05|p50|p95` (p/q of the sampled tokens before the update: 1 up to rounding when the sampler is
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
    ...spreadMetrics('ratio', ratios),
    'tokens/trained': pass.trainingTokens,
  });
}

/** Components are measured apart, so that one that stops working doesn't hide in the sum. */
function componentMetrics(rollouts: readonly { readonly grade?: Grade }[]): Metrics {
  const all = rollouts.flatMap(({ grade }) => grade?.components ?? []);
  const metrics: Record<string, number> = {};
  for (const name of new Set(all.map((component) => component.name))) {
    const own = all.filter((component) => component.name === name);
    const scores = own.flatMap((each) => (each.status === 'ok' || each.status === 'unparsed' ? [each.score] : []));
    const failed = own.filter(({ status }) => status === 'timeout' || status === 'grader_error').length;
    metrics[`reward/${name}`] = mean(scores); // NaN, and so left out, where none scored
    if (failed > 0) metrics[`grade/${name}_failed`] = failed;
  }
  return metrics;
}

/** What the excluded and floored answers of a step come to, in one line without content; absent where there were none. */
export function gradingWarning(groups: readonly RolloutGroup<Problem>[]): string | undefined {
  const rollouts = groups.flatMap((group) => group.rollouts);
  const failures = rollouts.filter(({ grade }) => isFailure(grade));
  if (failures.length === 0) return undefined;
  const late = failures.filter(({ grade }) => grade.status === 'timeout').length;
  const excluded = failures.filter(({ reward }) => reward === undefined).length;
  const fate = excluded === failures.length ? 'left out' : 'trained with the floor reward';
  const kinds = `${failures.length - late} by an error, ${late} by time`;
  return `${failures.length} of ${rollouts.length} answers could not be graded (${kinds}) and were ${fate}`;
}

export function finite(metrics: Metrics): Metrics {
  return Object.fromEntries(Object.entries(metrics).filter(([, value]) => Number.isFinite(value)));
}

/** Lengths of time in which anything of these spans went on. */
export function unionLength(spans: readonly { readonly from: number; readonly to: number }[]): number {
  let [length, end] = [0, Number.NEGATIVE_INFINITY];
  for (const { from, to } of spans.toSorted((a, b) => a.from - b.from)) {
    length += Math.max(0, to - Math.max(from, end));
    end = Math.max(end, to);
  }
  return length;
}
