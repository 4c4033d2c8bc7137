import { describe, expect, it } from 'vitest';
import type { Environment, Grade, Problem } from '../environments/environment.js';
import { createGrader } from '../graders/grader.js';
import { Bandit, characterTokenizer, copyEnvironment, copyProblem } from '../testing/bandit.js';
import { evaluate } from './evaluate.js';
import { runGrpo } from './grpo.js';
import type { GrpoOptions, GrpoStep } from './grpo-options.js';
import type { OnGraderError } from './rollouts.js';

const small = { groupsPerStep: 4, samplesPerGroup: 16, maxTokens: 1, steps: 1 };
const right = {
  name: 'right',
  score: ({ text, problem }: { text: string; problem: { answer: string } }) => (text === problem.answer ? 1 : 0),
};

/** An environment whose grader fails for the answers that `fails` names. */
function failingFor(fails: (text: string) => boolean, failure: () => number | Promise<number>): Environment {
  const grade = createGrader({
    components: [
      right,
      { name: 'fragile', weight: 0.5, timeoutMs: 5, score: ({ text }) => (fails(text) ? failure() : 0) },
    ],
  });
  return { ...copyEnvironment, grade };
}
const broken = (): number => {
  throw new Error('the grader is broken');
};
const endless = (): Promise<number> => new Promise(() => {});

async function oneStep(environment: Environment, options: Partial<GrpoOptions<Problem>> = {}): Promise<GrpoStep> {
  const steps: GrpoStep[] = [];
  await runGrpo({ ...small, ...options, training: new Bandit(), environment, onStep: (step) => void steps.push(step) });
  return steps[0]!;
}

describe('a loop with a grader of components', () => {
  it('measures every component apart from the reward', async () => {
    const step = await oneStep(failingFor(() => false, broken));
    expect(step.metrics['reward/right']).toBeCloseTo(step.metrics['reward/mean']!, 12);
    expect(step.metrics['reward/fragile']).toBe(0);
    expect(step.warnings).toEqual([]);
  });

  it.each<[string, () => number | Promise<number>, Grade['status'], string]>([
    ['throws', broken, 'grader_error', 'grade/errors'],
    ['takes too long', endless, 'timeout', 'grade/timeouts'],
  ])('leaves out, counts and reports answers whose grader %s', async (_, failure, status, metric) => {
    const step = await oneStep(
      failingFor((text) => text === '7', failure),
      { maxGraderErrorShare: 1 },
    );
    const failed = step.groups.flatMap(({ rollouts }) => rollouts).filter(({ grade }) => grade.status === status);
    expect(failed.length).toBeGreaterThan(0);
    for (const { text, reward } of failed) expect([text, reward]).toEqual(['7', undefined]);
    expect(step.metrics[metric]).toBe(failed.length);
    expect(step.metrics['grade/excluded']).toBe(failed.length);
    expect(step.metrics['grade/fragile_failed']).toBe(failed.length);
    expect(step.warnings).toEqual([expect.stringMatching(new RegExp(`^${failed.length} of 64 answers .* left out$`))]);
    // The mean is that of the answers that were graded, not one with zeros in it.
    const graded = step.groups
      .flatMap(({ rollouts }) => rollouts)
      .flatMap(({ grade }) => (grade.status === 'ok' ? [grade.reward] : []));
    expect(step.metrics['reward/mean']).toBeCloseTo(
      graded.reduce((sum, reward) => sum + reward, 0) / graded.length,
      12,
    );
  });

  it('does not wait for ever for a grader of its own that never answers, in steps and in evaluations', async () => {
    const environment: Environment = {
      ...copyEnvironment,
      grade: (answer, context) =>
        answer.text === '7' ? new Promise(() => {}) : copyEnvironment.grade(answer, context),
    };
    const step = await oneStep(environment, { maxGraderErrorShare: 1, timeoutMs: 20 });
    const late = step.groups.flatMap(({ rollouts }) => rollouts).filter(({ text }) => text === '7');
    expect(late.length).toBeGreaterThan(0);
    for (const { grade } of late) expect(grade).toMatchObject({ status: 'timeout', error: { code: 'grader_timeout' } });
    expect(step.metrics['grade/timeouts']).toBe(late.length);
    const never: Environment = { ...copyEnvironment, grade: () => new Promise(() => {}) };
    const problems = [1, 2].map(copyProblem);
    const work = { environment: never, tokenizer: characterTokenizer(), problems, maxTokens: 1, timeoutMs: 20 };
    await expect(evaluate(new Bandit().snapshot(), work)).rejects.toMatchObject({
      code: 'grader_failed',
      cause: { code: 'grader_timeout' },
    });
    await expect(evaluate(new Bandit().snapshot(), { ...work, timeoutMs: 0 })).rejects.toThrow('options.timeoutMs');
  });

  it('trains failed answers with the floor where one is set, and still counts them', async () => {
    const onGraderError: OnGraderError = { floor: -1 };
    const step = await oneStep(
      failingFor((text) => text === '7', broken),
      { maxGraderErrorShare: 1, onGraderError },
    );
    const failed = step.groups
      .flatMap(({ rollouts }) => rollouts)
      .filter(({ grade }) => grade.status === 'grader_error');
    expect(failed.map(({ reward }) => reward)).toEqual(failed.map(() => -1));
    expect(step.metrics).toMatchObject({ 'grade/errors': failed.length, 'grade/excluded': 0 });
    expect(step.warnings[0]).toMatch(/floor reward$/);
  });

  it.each([['exclude' as const], [{ floor: 0 }]])(
    'stops above the share of failures, with %s as well',
    async (onGraderError) => {
      await expect(
        oneStep(
          failingFor(() => true, broken),
          { onGraderError },
        ),
      ).rejects.toMatchObject({
        code: 'grader_failed',
        details: { failed: 64, of: 64, limit: 0.2 },
        cause: { message: 'the grader is broken', stack: expect.stringContaining('grading.test') },
      });
    },
  );

  it.each<[string, object, string]>([
    ['an unknown status', { status: 'correct?', reward: 1 }, 'grade.status'],
    ['components that are no list', { status: 'ok', reward: 1, components: { right: 1 } }, 'grade.components'],
  ])('trains on no answer whose grade has %s', async (_, grade, field) => {
    const environment: Environment = {
      ...copyEnvironment,
      grade: (answer) => (answer.text === '7' ? (grade as Grade) : copyEnvironment.grade(answer)),
    };
    const step = await oneStep(environment, { maxGraderErrorShare: 1 });
    const failed = step.groups.flatMap(({ rollouts }) => rollouts).filter(({ text }) => text === '7');
    expect(failed.length).toBeGreaterThan(0);
    for (const { grade, reward } of failed)
      expect([grade, reward]).toMatchObject([{ status: 'grader_error', error: { details: { field } } }, undefined]);
    expect(step.metrics).toMatchObject({ 'grade/errors': failed.length, 'grade/excluded': failed.length });
  });

  it('refuses a floor that is no number', async () => {
    await expect(oneStep(copyEnvironment, { onGraderError: { floor: Number.NaN } })).rejects.toMatchObject({
      code: 'invalid_argument',
    });
  });

  it('tells graders when the run is aborted', async () => {
    const abort = new AbortController();
    let told = 0;
    const environment: Environment = {
      ...copyEnvironment,
      grade: (_, { signal } = {}) =>
        new Promise((resolve) => {
          signal?.addEventListener('abort', () => {
            told += 1;
            resolve({ status: 'ok', reward: 0 });
          });
          queueMicrotask(() => abort.abort());
        }),
    };
    await expect(oneStep(environment, { signal: abort.signal })).rejects.toMatchObject({ code: 'cancelled' });
    expect(told).toBe(64);
  });
});

describe('evaluate', () => {
  it('leaves answers whose grader took too long out of n', async () => {
    const problems = [0, 1, 2, 3].map(copyProblem);
    const environment = failingFor(() => true, endless);
    const tokenizer = characterTokenizer();
    const result = await evaluate(new Bandit().snapshot(), {
      environment,
      tokenizer,
      problems,
      maxTokens: 1,
      maxGraderErrorShare: 1,
    });
    expect(result).toMatchObject({ n: 0, graderErrors: 4 });
  });
});
