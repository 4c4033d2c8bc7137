/** Rewards over steps: what rises too fast, for the wrong reason, or against the held-out problems. */
import { counted } from '../../counted.js';
import { mean, populationStd } from '../../statistics/advantages.js';
import type { Metrics } from '../../training/grpo-metrics.js';
import { lengthRewardOf } from '../history.js';
import { alarmRule } from '../rule.js';
import { valuesOf } from '../windows.js';

export const rewardJump = alarmRule({
  name: 'guard/reward-jump',
  levels: ['warn'],
  what: 'the mean reward jumps within one step',
  remedy:
    'read samples of the step beside those before it (loopwright samples): a jump is more often a loophole of the grader than a skill',
  needs: '`groups` with `reward`',
  limits: {
    window: { value: 10, why: 'steps before that it is compared with' },
    minSteps: { value: 5, why: 'of them, before it is judged' },
    deviations: {
      value: 3,
      why: 'standard deviations of the mean reward over the window, above its highest; a steady rise widens the deviation, and so is let through',
    },
    share: {
      value: 0.25,
      why: 'of the range of all rewards so far, at least: smaller jumps are noise of a few problems',
    },
  },
  look({ now: { metrics, rewards_PG }, past, limits }) {
    const value = metrics['reward/mean'];
    const earlier = valuesOf(past.steps, 'reward/mean').slice(-limits.window);
    if (value === undefined || earlier.length < limits.minSteps || past.rewards === undefined) return undefined;
    const own = rewards_PG.flat();
    const range = Math.max(past.rewards.high, ...own) - Math.min(past.rewards.low, ...own);
    const highest = Math.max(...earlier);
    const least = Math.max(limits.deviations * populationStd(earlier), limits.share * range);
    if (!(range > 0 && value - highest > least)) return undefined;
    return {
      level: 'warn',
      seen: `the mean reward is ${value.toPrecision(3)}, in the ${counted(earlier.length, 'step')} before it was ${highest.toPrecision(3)} at most`,
    };
  },
});

export const lengthExploitation = alarmRule({
  name: 'guard/length-exploitation',
  levels: ['warn'],
  what: 'answers grow, and within a problem the longer ones have the higher rewards',
  remedy:
    'look for a reward that counts words, lines or tokens; lower long answers with overlong, or divide by the length (lengthNormalization)',
  needs: '`groups` with `reward`',
  limits: {
    window: { value: 5, why: 'steps, compared with the first five of the run' },
    growth: { value: 1.5, why: 'times the length at the beginning' },
    correlation: {
      value: 0.5,
      why: 'Pearson’s r of length and reward within groups, mean of the window: where length is only a sign of thinking, right answers to a problem are no longer than wrong ones',
    },
  },
  look({ now, past, limits }) {
    const name = 'completion/length_mean';
    const window = [...past.steps, { metrics: now.metrics, ...lengthRewardOf(now) }].slice(-limits.window);
    const beginning = valuesOf(past.first, name);
    if (past.steps.length < past.first.length + limits.window - 1 || beginning.length < 5) return undefined;
    const lengths = valuesOf(window, name);
    const correlations = window.flatMap(({ lengthReward }) => lengthReward ?? []);
    if (lengths.length < limits.window || correlations.length === 0) return undefined;
    const growth = mean(lengths) / mean(beginning);
    const correlation = mean(correlations);
    if (!(growth >= limits.growth && correlation >= limits.correlation)) return undefined;
    return {
      level: 'warn',
      seen: `answers are ${growth.toFixed(2)} times as long as at first (${mean(lengths).toFixed(1)} tokens), and length and reward go together (r = ${correlation.toFixed(2)})`,
    };
  },
});

/** A measurement as something that is to rise. */
function scoreOf({
  metrics,
}: {
  readonly metrics: Metrics;
}): { readonly value: number; readonly half: number } | undefined {
  const accuracy = metrics['validation/accuracy'];
  if (accuracy !== undefined) return { value: accuracy, half: accuracy - (metrics['validation/low'] ?? accuracy) };
  const loss = metrics['validation/loss'];
  if (loss === undefined) return undefined;
  return { value: -loss, half: (metrics['validation/loss_high'] ?? loss) - loss };
}

export const heldOutFalls = alarmRule({
  name: 'guard/held-out-falls',
  levels: ['note', 'warn'],
  what: 'training goes up while what is held out falls twice in a row',
  remedy:
    'go back to the checkpoint of the best measurement; read held-out samples for what the grader rewards; train on more, or more varied, problems',
  needs: '`validation`, and `reward/mean` or `loss/mean`',
  limits: {
    halfWidths: {
      value: 1,
      why: 'half-widths of the 95 % interval that both falls come to together; smaller ones are a note, since two falls in a row are chance one time in six',
    },
  },
  look({ now, past, limits }) {
    const last = past.validations.slice(-3);
    const [first, second, third] = last.map(scoreOf);
    if (first === undefined || second === undefined || third === undefined) return undefined;
    if (!(third.value < second.value && second.value < first.value)) return undefined;
    const since = past.steps.filter(({ step }) => step > last[0]!.step);
    const before = past.steps.filter(({ step }) => step <= last[0]!.step).slice(-5);
    const isReward = now.metrics['reward/mean'] !== undefined;
    const name = isReward ? 'reward/mean' : 'loss/mean';
    if (now.metrics[name] === undefined) return undefined;
    const [from, to] = [
      valuesOf(before.length > 0 ? before : since.slice(0, 1), name),
      valuesOf([...since, now].slice(-5), name),
    ];
    const rise = (isReward ? 1 : -1) * (mean(to) - mean(from));
    if (!(rise > 0)) return undefined;
    const fall = first.value - third.value;
    const unit = isReward ? 'accuracy' : 'minus loss';
    return {
      level: fall > limits.halfWidths * first.half ? 'warn' : 'note',
      seen: `held-out ${unit} fell twice, from ${first.value.toPrecision(3)} to ${third.value.toPrecision(3)}, while ${name} went from ${mean(from).toPrecision(3)} to ${mean(to).toPrecision(3)}`,
    };
  },
});
