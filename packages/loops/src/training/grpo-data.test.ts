/** From judged answers to datums: what is left out, what is divided, where the reference goes. */
import { describe, expect, it } from 'vitest';
import { centerRewards } from '../statistics/advantages.js';
import { teaches, trainingData, withPenalties } from './grpo-data.js';
import type { Rollout, RolloutGroup } from './rollouts.js';

const problem = { id: 'p', question: 'q', answer: 'a' };
const plain = {
  advantages: centerRewards,
  klCoefficient: 0,
  estimator: 'k1',
  placement: 'reward',
  lengthNormalization: 1,
  overlong: 'train',
  reference: undefined,
} as const;

function rollout(reward: number, length: number, stopReason: 'stop' | 'length' = 'stop'): Rollout {
  const tokens = Array.from({ length }, (_, t) => 10 + t);
  return {
    sequence: { tokens, logprobs: tokens.map((_, t) => -1 - t), stopReason },
    text: 'x'.repeat(length),
    grade: { status: 'ok', reward },
    reward,
  };
}

const group = (...rollouts: Rollout[]): RolloutGroup<typeof problem> => ({ problem, prompt: [1, 2], rollouts });

/** Advantages of the answers' tokens, datum by datum. */
const advantagesOf = ({ data }: ReturnType<typeof trainingData>) =>
  data.map(({ lossFnInputs: { advantages, weights } }) =>
    Array.from<unknown, number>(advantages, Number).filter((_, t) => Number(weights[t]) === 1),
  );

describe('trainingData', () => {
  const groups = [
    group(rollout(1, 2), rollout(0, 4)),
    group(rollout(1, 1), rollout(1, 1)),
    group(rollout(3, 3), rollout(1, 1)),
  ];

  it('takes the groups that teach, one advantage a token', () => {
    expect(advantagesOf(trainingData(groups, plain))).toEqual([[0.5, 0.5], new Array(4).fill(-0.5), [1, 1, 1], [-1]]);
    expect(trainingData(groups, plain).near).toEqual([]);
  });

  it('divides by lengths, over what is trained on', () => {
    const by = (lengthNormalization: 'sequence' | 'batch') =>
      advantagesOf(trainingData(groups, { ...plain, lengthNormalization })).map(([first]) => first);
    expect(by('sequence')).toEqual([0.5 / 2, -0.5 / 4, 1 / 3, -1]);
    expect(by('batch')).toEqual([0.05, -0.05, 0.1, -0.1]); // ten tokens; the dead group has none
  });

  it('masks answers that were cut off, which still count in the mean of their group', () => {
    const cut = [
      group(rollout(1, 2), rollout(0, 4, 'length')),
      group(rollout(1, 1, 'length'), rollout(0, 1, 'length')),
    ];
    const masked = { ...plain, overlong: 'mask' } as const;
    expect(advantagesOf(trainingData(cut, masked))).toEqual([[0.5, 0.5]]);
    expect(cut.map((each) => teaches(each, masked))).toEqual([true, false]);
    expect(cut.map((each) => teaches(each, plain))).toEqual([true, true]);
    expect(trainingData(cut, { ...masked, lengthNormalization: 'batch' }).data).toHaveLength(1);
  });

  it('lowers advantages by the estimate, divided like them', () => {
    const [first] = groups;
    const scores = new Map(first!.rollouts.map(({ sequence }) => [sequence, sequence.logprobs.map((lp) => lp - 0.4)]));
    const options = { ...plain, klCoefficient: 0.5, lengthNormalization: 'sequence', reference: scores } as const;
    const near = (values: readonly number[]) => values.map((value) => expect.closeTo(value, 12));
    expect(advantagesOf(trainingData([first!], options))).toEqual([
      near([0.15, 0.15]),
      near(new Array(4).fill(-0.175)),
    ]);
    const squared = trainingData([first!], { ...options, estimator: 'k2' });
    expect(advantagesOf(squared)[0]).toEqual(near([0.23, 0.23])); // (0.5 − 0.5·0.08) / 2
  });

  it('leaves advantages alone where the reference is part of the loss, and gives that its own datums', () => {
    const [first] = groups;
    const scores = new Map(first!.rollouts.map(({ sequence }) => [sequence, sequence.logprobs.map(() => -3)]));
    const options = {
      ...plain,
      klCoefficient: 0.5,
      placement: 'loss',
      lengthNormalization: 4,
      reference: scores,
    } as const;
    const { data, near, sources } = trainingData([first!], options);
    expect(advantagesOf({ data, near, sources })[0]).toEqual([0.125, 0.125]);
    expect(near).toHaveLength(2);
    expect(near[0]).toEqual({
      modelInput: [1, 2, 10],
      lossFnInputs: { targetTokens: [2, 10, 11], weights: [0, 0.25, 0.25], refLogProb: [0, -3, -3] },
    });
  });
});

it('rewards of long answers are lowered before anything is made of them', () => {
  const { reward: _, ...rest } = rollout(0, 8);
  const failed: Rollout = { ...rest, grade: { status: 'grader_error', error: new Error('x') } };
  const [lowered] = withPenalties([group(rollout(1, 4), rollout(1, 7), rollout(1, 8), failed)], {
    overlong: { penalizeLast: 4 },
    maxTokens: 8,
  });
  expect(lowered!.rollouts.map(({ reward }) => reward)).toEqual([1, 0.25, 0, undefined]);
});
