/** What the guard remembers of earlier steps: bounded, however long a run is. */
import { finite, type Metrics } from '../training/grpo-metrics.js';
import type { Observation } from './observation.js';
import { type PastGroups, rememberGroups } from './past-groups.js';
import { type PastRows, rememberRows } from './past-rows.js';
import { type PastSamplers, rememberSampler } from './past-samplers.js';
import { similarityOf } from './similarity.js';

/** The metrics that rules compare with earlier steps. All others of a step are forgotten. */
export const rememberedMetrics = [
  ...(['optim/grad_norm', 'optim/lr', 'optim/step', 'loss/mean', 'kl/base'] as const),
  ...(['reward/mean', 'reward/std_within_group', 'completion/length_mean'] as const),
  ...(['validation/accuracy', 'validation/low', 'validation/loss', 'validation/loss_high'] as const),
] as const;

export type RememberedMetric = (typeof rememberedMetrics)[number];

/** Finite ones only. */
export type PastMetrics = { readonly [N in RememberedMetric]?: number };

/** Steps that are kept: twice the longest window of a rule. */
export const keptSteps = 40;

export interface PastStep {
  readonly step: number;
  readonly metrics: PastMetrics;
  /** Datums that were trained. */
  readonly datums: number;
  /** Whether no group had two different rewards; undefined without groups. */
  readonly isDead?: boolean;
  /** Within-group correlation of length and reward; absent where either does not vary. */
  readonly lengthReward?: number;
  /** How alike the answers to a problem are, from 0 to 1; absent without groups. */
  readonly similarity?: number;
}

export interface History {
  /** The last {@link keptSteps}, oldest first, without the present one. */
  readonly steps: readonly PastStep[];
  /** The first five of the run. */
  readonly first: readonly PastStep[];
  /** Measurements on what is not trained on, the last eight, the present step's included. */
  readonly validations: readonly { readonly step: number; readonly metrics: PastMetrics }[];
  /** Optimizer steps before the present one. */
  readonly updates: number;
  /** Of all rewards before the present step; undefined before the first. */
  readonly rewards: { readonly low: number; readonly high: number } | undefined;
  readonly samplers: PastSamplers;
  readonly rows: PastRows;
  readonly groups: PastGroups;
}

export function emptyHistory(): History {
  return {
    ...{ steps: [], first: [], validations: [], updates: 0, rewards: undefined },
    samplers: { seenAt: new WeakMap(), first: undefined },
    rows: { epochs: new Map(), closed: -1, counted: 0, repeated: 0, dropped: 0, unread: 0 },
    groups: { hashes: new Map() },
  };
}

/** Before the rules look: what they may count on of the present step. */
export function withValidation(history: History, { facts: { validation } }: Observation): History {
  if (validation === undefined || validation.step === history.validations.at(-1)?.step) return history;
  const { step, metrics } = validation;
  return { ...history, validations: [...history.validations, { step, metrics: remembered(metrics) }].slice(-8) };
}

/** After the rules have looked. */
export function remember(history: History, observation: Observation): History {
  const { step, metrics, isUpdate, facts, rewards_PG } = observation;
  const rewards = rewards_PG.flat().filter(Number.isFinite);
  const past: PastStep = {
    ...{ step, metrics: remembered(metrics), datums: facts.data?.length ?? 0 },
    ...(rewards_PG.length === 0 ? {} : { isDead: rewards_PG.every((row) => row.every((each) => each === row[0])) }),
    ...finite(lengthRewardOf(observation)),
    ...similarityOf(observation),
  };
  const low = rewards.reduce((a, b) => Math.min(a, b), history.rewards?.low ?? Number.POSITIVE_INFINITY);
  const high = rewards.reduce((a, b) => Math.max(a, b), history.rewards?.high ?? Number.NEGATIVE_INFINITY);
  return {
    ...history,
    steps: [...history.steps, past].slice(-keptSteps),
    first: history.first.length < 5 ? [...history.first, past] : history.first,
    updates: history.updates + (isUpdate ? 1 : 0),
    rewards: low > high ? undefined : { low, high },
    samplers: rememberSampler(history.samplers, observation, history.updates),
    rows: rememberRows(history.rows, observation),
    groups: rememberGroups(history.groups, observation),
  };
}

function remembered(metrics: Metrics): PastMetrics {
  return finite(Object.fromEntries(rememberedMetrics.map((name) => [name, metrics[name] ?? Number.NaN])));
}

/** Pearson's r of length and reward, both less their group's mean: what the length alone says of the reward, problem by problem. */
export function lengthRewardOf({ groups }: Pick<Observation, 'groups'>): { readonly lengthReward?: number } {
  let [both, lengths, rewards] = [0, 0, 0];
  for (const { samples } of groups) {
    const judged = samples.filter(({ reward }) => reward !== undefined);
    const length = judged.reduce((sum, { tokens }) => sum + tokens.length, 0) / judged.length;
    const reward = judged.reduce((sum, each) => sum + (each.reward ?? 0), 0) / judged.length;
    for (const each of judged) {
      const [l, r] = [each.tokens.length - length, (each.reward ?? 0) - reward];
      both += l * r;
      lengths += l * l;
      rewards += r * r;
    }
  }
  return lengths > 0 && rewards > 0 ? { lengthReward: both / Math.sqrt(lengths * rewards) } : {};
}
