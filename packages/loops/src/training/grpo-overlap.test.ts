/** Sampling that goes on while the trainer steps, and the loop without it, which is the same code. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { Environment } from '../environments/environment.js';
import { Bandit, copyEnvironment, copyProblem } from '../testing/bandit.js';
import { rejection } from '../testing/rejection.js';
import { type Trajectory, trajectories } from '../testing/trajectories.js';
import { runGrpo } from './grpo.js';
import type { GrpoOptions, GrpoStep, LoopNotice } from './grpo-options.js';

const recorded = JSON.parse(
  readFileSync(new URL('../../../testkit/fixtures/loops/trajectories.json', import.meta.url), 'utf8'),
) as Record<string, Trajectory>; // true: written from trajectories

/** As JSON has it: no negative zero. */
const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;

/** No group is ever dead. */
const alternating = (): Environment => {
  let count = 0;
  return { ...copyEnvironment, grade: () => ({ status: 'ok', reward: count++ % 2 }) };
};

async function run(options: Partial<GrpoOptions<ReturnType<typeof copyProblem>>> = {}) {
  const steps: GrpoStep[] = [];
  const training = new Bandit();
  const result = await runGrpo({
    ...{ training, environment: alternating(), steps: 6, groupsPerStep: 4, samplesPerGroup: 4, maxTokens: 1 },
    onStep: (step) => void steps.push(step),
    ...options,
  });
  const groups = steps.flatMap((step) => step.groups);
  return { steps, groups, training, ...result };
}

describe('without overlap', () => {
  it.each(Object.keys(recorded))('numbers and weights are what they were, bit for bit: %s', async (name) => {
    const { metrics, weights } = await trajectories[name]!({});
    expect(plain(metrics)).toMatchObject(recorded[name]!.metrics);
    expect(plain(weights)).toEqual(recorded[name]!.weights);
  });

  it('every group is of the newest policy', async () => {
    const { steps } = await run();
    for (const { step, groups, metrics } of steps) {
      expect(groups.map(({ policyStep }) => policyStep)).toEqual(groups.map(() => step - 1));
      expect(metrics).toMatchObject({ 'staleness/mean': 0, 'staleness/max': 0, 'groups/requeued': 0 });
    }
  });
});

describe('with maxStepsOffPolicy', () => {
  it.each([1, 3])('%d, no group is older, older ones are used, and each problem once', async (maxStepsOffPolicy) => {
    const { steps, groups } = await run({ maxStepsOffPolicy, steps: 8 });
    const ages = groups.map(({ age }) => age);
    expect(Math.max(...ages)).toBeLessThanOrEqual(maxStepsOffPolicy);
    expect(Math.max(...ages)).toBeGreaterThan(0);
    const indices = groups.map(({ problemIndex }) => problemIndex);
    expect(new Set(indices).size).toBe(indices.length);
    for (const { groups: own, metrics } of steps) {
      expect(metrics['staleness/max']).toBe(Math.max(...own.map(({ age }) => age)));
    }
  });

  it('problems come in the same order, whatever the timing', async () => {
    const byIndex = async (maxStepsOffPolicy: number) => {
      const { groups } = await run({ maxStepsOffPolicy, seed: 9 });
      return new Map(groups.map(({ problemIndex, problem }) => [problemIndex, problem.id]));
    };
    const [calm, ahead] = [await byIndex(0), await byIndex(2)];
    for (const [index, id] of ahead) if (calm.has(index)) expect(id).toBe(calm.get(index));
  });

  it('at most k + 1 steps of groups are begun before the first step', async () => {
    const begun = (calls: readonly string[]): number =>
      calls.slice(0, calls.indexOf('forward-backward')).filter((name) => name === 'sample').length;
    expect(begun((await run({ maxStepsOffPolicy: 0 })).training.calls)).toBe(4);
    expect(begun((await run({ maxStepsOffPolicy: 2, steps: 9 })).training.calls)).toBe(12);
  });

  it.each(['requeue', 'drop'] as const)('%s is what becomes of a group that takes too long', async (stalePolicy) => {
    const inner = alternating();
    let isFirst = true;
    const environment: Environment = {
      ...inner,
      grade: (answer) => {
        if (!isFirst) return inner.grade(answer);
        isFirst = false;
        return new Promise(() => undefined);
      },
    };
    const { metrics, groups } = await run({ environment, stalePolicy, maxStepsOffPolicy: 1, steps: 8 });
    const sum = (name: string): number => metrics.reduce((total, step) => total + step[name]!, 0);
    expect(sum('groups/requeued')).toBe(stalePolicy === 'requeue' ? 1 : 0);
    expect(sum('groups/dropped')).toBe(stalePolicy === 'drop' ? 1 : 0);
    expect(groups.some(({ problemIndex }) => problemIndex === 0)).toBe(stalePolicy === 'requeue');
  });

  it('a loss that leaves older policies uncorrected is named', async () => {
    const notices: string[] = [];
    const onNotice = ({ type, message }: LoopNotice) => void (type !== 'alarm' && notices.push(message));
    await run({ maxStepsOffPolicy: 1, onNotice });
    expect(notices).toEqual([]);
    await run({ maxStepsOffPolicy: 1, loss: 'importance_sampling', onNotice });
    expect(notices).toEqual([expect.stringContaining('without a bound')]);
  });
});

describe('passes in parts', () => {
  it('add up to the gradient of one', async () => {
    const [whole, parts] = [await run({ steps: 1 }), await run({ steps: 1, groupsPerPass: 1 })];
    expect(parts.training.calls.filter((name) => name === 'forward-backward')).toHaveLength(4);
    expect(whole.training.calls.filter((name) => name === 'forward-backward')).toHaveLength(1);
    parts.training.weights.flat().forEach((weight, i) => {
      expect(weight).toBeCloseTo(whole.training.weights.flat()[i]!, 9);
    });
    expect(parts.metrics[0]!['loss/sum']).toBeCloseTo(whole.metrics[0]!['loss/sum']!, 9);
  });

  it('are refused where a divisor needs the whole step', async () => {
    const error = await rejection(run({ groupsPerPass: 1, lengthNormalization: 'batch' }));
    expect(error.details).toMatchObject({ field: 'options.groupsPerPass' });
  });
});

describe('a list of problems', () => {
  it('is taken epoch by epoch, each in its own order, and the end of one is told', async () => {
    const problems = [0, 1, 2, 3, 4, 5].map(copyProblem);
    const notices: string[] = [];
    const onNotice = ({ type, message }: LoopNotice) => void (type !== 'alarm' && notices.push(message));
    const { groups } = await run({ problems, steps: 3, onNotice });
    const ids = groups.map(({ problem }) => problem.id);
    const all = problems.map(({ id }) => id);
    expect(ids.slice(0, 6).toSorted()).toEqual(all);
    expect(ids.slice(6).toSorted()).toEqual(all);
    expect(ids.slice(0, 6)).not.toEqual(ids.slice(6));
    expect(notices).toEqual([expect.stringMatching(/^epoch 1 of 6 problems has ended/)]);
  });
});
