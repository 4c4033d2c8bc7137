import { join } from 'node:path';
import { temporaryDirectory } from '@loopwright/testkit';
import { describe, expect, it } from 'vitest';
import { openRun } from '../runs/open-run.js';
import { comparePairs } from '../statistics/paired.js';
import { Bandit, characterTokenizer, copyEnvironment, copyProblem } from '../testing/bandit.js';
import { runGrpo } from '../training/grpo.js';
import { compareModels } from './compare-models.js';
import { checkHeldOut } from './held-out-check.js';
import { casesToSettle, regressionOutcome } from './regression.js';

const problems = Array.from({ length: 40 }, (_, i) => ({ ...copyProblem(i % 4), id: `p${i}` }));
const tokenizer = characterTokenizer();

async function trained(environment = copyEnvironment) {
  const training = new Bandit();
  const start = training.snapshot();
  const options = { environment, steps: 12, maxTokens: 1, seed: 1, learningRate: 0.01, onNotice: () => undefined };
  await runGrpo({ training, ...options });
  return { start, candidate: training.snapshot() };
}

describe('a comparison of two models', () => {
  it('is in pairs, with tokens, prompts and times of both', async () => {
    const models = await trained();
    let now = 0;
    const told: [number, number][] = [];
    const comparison = await compareModels({
      ...{ environment: copyEnvironment, problems, tokenizer, ...models, settings: { maxTokens: 1 } },
      ...{ timed: 3, concurrency: 16, now: () => (now += 10), onProgress: (done, of) => told.push([done, of]) },
    });
    // The start writes the first character always: right for 0=, a quarter of the problems.
    expect(comparison.right).toMatchObject({ n: 40, start: 0.25, candidate: 1, outcome: 'better', method: 'newcombe' });
    expect(comparison.tokens).toMatchObject({ start: 1, candidate: 1, difference: 0 });
    expect(comparison.promptTokens).toEqual({ start: 2, candidate: 2 });
    expect(comparison.latency).toMatchObject({ n: 3, start: { p50Ms: 10, p95Ms: 10, msPerToken: 10 } });
    expect(comparison).not.toHaveProperty('reward');
    expect(told).toEqual([
      [16, 40],
      [32, 40],
      [40, 40],
    ]);
  });

  it('leaves out pairs of which one answer could not be judged, and compares rewards that are no yes or no', async () => {
    const models = await trained();
    const environment: typeof copyEnvironment = {
      ...copyEnvironment,
      grade: ({ problem, text }) => {
        if (problem.id === 'p3') throw new Error('broken');
        return { status: 'ok', reward: text === problem.answer ? 1 : 0.25 };
      },
    };
    const comparison = await compareModels({ environment, problems, tokenizer, ...models, timed: 0 });
    expect(comparison).toMatchObject({ unjudged: 1, right: { n: 39 }, reward: { n: 39, method: 'student' } });
    expect(comparison).not.toHaveProperty('latency');
  });

  it('of a model with itself is not distinguishable', async () => {
    const { start } = await trained();
    const { right } = await compareModels({
      ...{ environment: copyEnvironment, problems, tokenizer, start, candidate: start, timed: 0 },
    });
    expect(right.outcome).toBe('not-distinguishable');
  });
});

describe('held-out problems', () => {
  it('are compared with what runs met by their prompts, however these are written', async () => {
    await using directory = await temporaryDirectory();
    const folder = join(directory.path, 'run');
    const problem = (question: string) => ({ id: question, question, answer: '' });
    const data = {
      train: [{ messages: [{ role: 'user', content: 'ONE  two' }] }],
      'held-out': [problem('three')],
      more: { sha256: 'ab', rows: 7 },
    };
    const run = await openRun({ folder, config: {}, data });
    const rollout = {
      ...{ text: '', reward: 1, grade: { status: 'ok' as const, reward: 1 } },
      sequence: { tokens: [1], logprobs: [-1], stopReason: 'stop' as const },
    };
    const met = (question: string) => [{ problem: { ...problem(question), id: 'other' }, rollouts: [rollout] }];
    await run.samples(1, met('four'));
    await run.samples(1, met('five'), 'validation');
    await run.finish();
    const names = ['one two', 'three', 'four', 'five', 'six', 'seven'];
    const check = await checkHeldOut(names.map(problem), { runs: [folder], train: [problem('Six')] });
    expect(check.trained.map(({ id }) => id)).toEqual(['one two', 'four', 'six']);
    expect(check.validated.map(({ id }) => id)).toEqual(['five']);
    expect(check.fresh.map(({ id }) => id)).toEqual(['three', 'five', 'seven']);
    expect([check.unknown, check.compared]).toEqual([['more'], 3]);
    expect(check.fromRuns).toBe(2);
  });
});

describe('a regression suite', () => {
  const of = (gained: number, lost: number, same: number) => {
    const list = (count: number, value: number) => new Array<number>(count).fill(value);
    return comparePairs(
      [...list(gained, 0), ...list(lost, 1), ...list(same, 1)],
      [...list(gained, 1), ...list(lost, 0), ...list(same, 1)],
    );
  };

  it('fell, held, or is undecided', () => {
    expect(regressionOutcome(of(0, 30, 70), 0.05)).toBe('fell');
    expect(regressionOutcome(of(2, 2, 396), 0.05)).toBe('held');
    expect(regressionOutcome(of(1, 1, 8), 0.05)).toBe('undecided');
  });

  it('that is undecided says about how many cases would settle it, and these do', () => {
    expect(casesToSettle(of(2, 2, 396), 0.05)).toBeUndefined();
    // No pair differs, all are right: at 95 % a fall of z²/(n + z²) can't be ruled out, which is 5 points at n = 19 z² = 73.
    expect(casesToSettle(of(0, 0, 20), 0.05)).toBe(73);
    // Equal rates of change: ((1.96 + 0.84) · √0.2 / 0.05)² = 628.
    const equal = casesToSettle(of(1, 1, 8), 0.05) ?? 0;
    expect([equal > 580, equal < 720]).toEqual([true, true]);
    // A fall of 10 points, more than the margin: sooner than that is seen.
    const fallen = of(1, 3, 16);
    expect(regressionOutcome(fallen, 0.05)).toBe('undecided');
    const enough = (casesToSettle(fallen, 0.05) ?? 0) / 20;
    expect(regressionOutcome(of(enough, 3 * enough, 16 * enough), 0.05)).toBe('fell');
    // Exactly at the margin of nothing.
    expect(casesToSettle(of(1, 1, 8), 0)).toBeUndefined();
  });
});
