/** The facts of a step, counted once for all rules. */
import { mean, populationStd } from '../statistics/advantages.js';
import type { Metrics } from '../training/grpo-metrics.js';
import { type Layout, layoutOf } from './datum-layout.js';
import type { GroupFacts, SampleFacts, StepFacts } from './facts.js';

export interface Observation {
  readonly step: number;
  readonly facts: StepFacts;
  /** Also those that are not finite. */
  readonly metrics: Metrics;
  readonly groups: readonly GroupFacts[];
  readonly samples: readonly SampleFacts[];
  /** Of the answers that have one. */
  readonly rewards_PG: readonly (readonly number[])[];
  /** Of each datum, where it is known what it was made of. */
  readonly layouts: readonly (Layout | undefined)[];
  readonly failed: number;
  readonly isUpdate: boolean;
}

export function observationOf(facts: StepFacts): Observation {
  const { step, groups = [], metrics = {}, update, learningRate } = facts;
  const samples = groups.flatMap((group) => group.samples);
  const rewards_PG = groups.map(({ samples: own }) =>
    own.flatMap(({ reward }) => (reward === undefined ? [] : [reward])),
  );
  const judged_PG = rewards_PG.filter((rewards) => rewards.length > 0);
  const lengths = samples.map(({ tokens }) => tokens.length);
  const measured: Metrics =
    samples.length === 0
      ? {}
      : {
          'reward/mean': mean(judged_PG.flat()),
          'reward/std_within_group': mean(judged_PG.map(populationStd)),
          'completion/length_mean': mean(lengths),
        };
  const all = { ...measured, ...metrics, ...update?.metrics };
  return {
    ...{ step, facts, groups, samples, rewards_PG },
    layouts: facts.sources?.map((source) => source && layoutOf(source)) ?? [],
    metrics: learningRate === undefined ? all : { ...all, 'optim/lr': learningRate },
    failed: samples.filter(({ status }) => status === 'grader_error' || status === 'timeout').length,
    isUpdate: update !== undefined || all['optim/grad_norm'] !== undefined,
  };
}
