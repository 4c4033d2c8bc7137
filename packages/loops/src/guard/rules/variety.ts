/** How different the answers to a problem are. */
import { mean } from '../../statistics/advantages.js';
import type { GroupFacts, SampleFacts } from '../facts.js';
import type { History } from '../history.js';
import type { Observation } from '../observation.js';
import { groupHash } from '../past-groups.js';
import { alarmRule } from '../rule.js';
import { similarityOf } from '../similarity.js';
import { valuesOf } from '../windows.js';

/** Of the range of all rewards: so near to the highest, most problems are solved, and answers alike because they are right. */
const nearTop = 0.2;

/** Whether the mean reward of the last five steps is near to the highest that was ever seen: then sameness is what was wanted. */
function isNearTop(now: Observation, { rewards, steps }: History): boolean {
  const values = valuesOf([...steps, now].slice(-5), 'reward/mean');
  if (rewards === undefined || values.length === 0 || rewards.low === rewards.high) return false;
  return mean(values) >= rewards.high - nearTop * (rewards.high - rewards.low);
}

export const stdCollapse = alarmRule({
  name: 'guard/std-collapse',
  levels: ['note', 'warn'],
  what: 'rewards within a group differ ever less: advantages vanish',
  remedy:
    'look whether answers have become alike (loopwright samples) or the grader can’t tell them apart any more; harder problems, more answers to each, or a KL coefficient help',
  needs: '`groups` with `reward`, ten steps',
  limits: {
    window: { value: 5, why: 'steps, compared with the first five of the run' },
    share: { value: 0.25, why: 'of the deviation at the beginning' },
  },
  explains: ['guard/dead-batch', 'guard/grader-constant'],
  look({ now, past, limits }) {
    const name = 'reward/std_within_group';
    const beginning = valuesOf(past.first, name);
    const window = valuesOf([...past.steps, now].slice(-limits.window), name);
    if (past.steps.length < past.first.length + limits.window - 1 || beginning.length < 5) return undefined;
    if (window.length < limits.window || !(mean(beginning) > 0)) return undefined;
    const share = mean(window) / mean(beginning);
    if (!(share < limits.share)) return undefined;
    return {
      level: isNearTop(now, past) ? 'note' : 'warn',
      seen: `the standard deviation of rewards within groups is ${mean(window).toPrecision(2)}, ${(100 * share).toFixed(0)} % of what it was at first`,
    };
  },
});

export const duplicateRollouts = alarmRule({
  name: 'guard/duplicate-rollouts',
  levels: ['note', 'warn'],
  what: 'answers are copies of each other, far less likely by chance than a sampler that repeats itself',
  remedy: 'give each sample its own seed: one request with numSamples, or a seed for each; sample at temperature 1',
  needs: '`groups` with `logprobs`; to see a step come again, with `prompt`',
  limits: {
    logProbability: {
      value: -14,
      why: 'nats: chance of it below one in a million, by the logprobs of the answers themselves; a model that is sure of its answer repeats it by right',
    },
    share: { value: 0.5, why: 'of the groups that are so; below it is a note' },
  },
  explains: [
    'guard/near-identical-samples',
    'guard/grader-constant',
    'guard/dead-batch',
    'guard/std-collapse',
    'guard/gradient-zero',
  ],
  look({ now: { groups }, past, limits }) {
    const judged = groups.filter(({ samples }) => samples.length > 1);
    // That at least half of P groups are copies: one of 2^P choices of them, each as likely as its groups together.
    const choices = judged.length * Math.LN2;
    const ofCopies = judged.map(({ samples }) => copyLogprob(samples)).filter((logprob) => logprob < 0);
    const isMost = ofCopies.length >= limits.share * judged.length && sumOf(ofCopies) < limits.logProbability - choices;
    const copies = isMost ? ofCopies : ofCopies.filter((logprob) => logprob < limits.logProbability);
    const again = groups.flatMap((group) => {
      const hash = groupHash(group);
      const step = hash === undefined ? undefined : past.groups.hashes.get(hash);
      return step !== undefined && wholeLogprob(group) < limits.logProbability ? [step] : [];
    });
    if (copies.length === 0 && again.length === 0) return undefined;
    const isGrave = isMost || again.length >= limits.share * groups.length;
    const parts = [
      ...(copies.length === 0 ? [] : [`in ${copies.length} of ${judged.length} groups all answers are the same`]),
      ...(again.length === 0 ? [] : [`${again.length} of ${groups.length} groups are those of step ${again[0]}`]),
    ];
    return { level: isGrave ? 'warn' : 'note', seen: parts.join('; ') };
  },
});

function sumOf(values: ArrayLike<number> = []): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i]!;
  return sum;
}

function areEqual(a: SampleFacts, b: SampleFacts): boolean {
  const [left, right] = [a.tokens, b.tokens];
  if (left.length !== right.length) return false;
  for (let i = 0; i < left.length; i++) if (left[i] !== right[i]) return false;
  return true;
}

/** Log-probability that all others are what the first is; 0 where they are not. */
function copyLogprob([first, ...others]: readonly SampleFacts[]): number {
  if (first?.logprobs === undefined || others.some((other) => !areEqual(first, other))) return 0;
  return others.length * sumOf(first.logprobs);
}

function wholeLogprob({ samples }: GroupFacts): number {
  return samples.reduce((sum, { logprobs }) => sum + sumOf(logprobs), 0);
}

export const nearIdenticalSamples = alarmRule({
  name: 'guard/near-identical-samples',
  levels: ['note', 'warn'],
  what: 'the answers to a problem are nearly the same, word for word: there is nothing left to choose from',
  remedy:
    'lower the learning rate or hold the model to the base with a KL coefficient; go back to a checkpoint from before, since variety does not come back by itself',
  needs: '`groups`',
  limits: {
    similarity: {
      value: 0.9,
      why: 'shared pairs of neighbouring tokens (Jaccard), mean over groups; samples of a healthy model are below 0.5',
    },
    window: { value: 3, why: 'steps in a row' },
    minTokens: { value: 4, why: 'mean length: shorter answers are alike by right' },
  },
  explains: ['guard/std-collapse', 'guard/dead-batch', 'guard/grader-constant'],
  look({ now, past, limits }) {
    if (!((now.metrics['completion/length_mean'] ?? 0) >= limits.minTokens)) return undefined;
    const { similarity } = similarityOf(now);
    if (similarity === undefined || similarity < limits.similarity) return undefined;
    const earlier = past.steps.slice(1 - limits.window);
    const isLong =
      earlier.length === limits.window - 1 && earlier.every((step) => (step.similarity ?? 0) >= limits.similarity);
    if (!isLong) return undefined;
    return {
      level: isNearTop(now, past) ? 'note' : 'warn',
      seen: `answers to a problem share ${(100 * similarity).toFixed(0)} % of their token pairs, in ${limits.window} steps in a row`,
    };
  },
});
