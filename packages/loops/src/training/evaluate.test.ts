import { describe, expect, it } from 'vitest';
import type { Environment } from '../environments/environment.js';
import { Bandit, characterTokenizer, copyEnvironment, copyProblem } from '../testing/bandit.js';
import { rejection } from '../testing/rejection.js';
import { evaluate } from './evaluate.js';

const tokenizer = characterTokenizer();
const problems = [0, 1, 2, 3].map(copyProblem);

describe('evaluate', () => {
  const options = { environment: copyEnvironment, tokenizer, maxTokens: 1 };

  it('counts right answers, with n and a 95 % interval', async () => {
    const result = await evaluate(new Bandit().snapshot(), { ...options, problems });
    expect(result).toMatchObject({ accuracy: 0.25, correct: 1, n: 4, unparsed: 0, graderErrors: 0 });
    expect(result.interval.low).toBeCloseTo(0.0456, 3);
    expect(result.interval.high).toBeCloseTo(0.6994, 3);
    expect(result.answers.map(({ problem, text }) => [problem.id, text])).toEqual(problems.map(({ id }) => [id, '0']));
  });

  it('samples greedily, one answer each', async () => {
    const seen: unknown[] = [];
    const training = new Bandit({ onCall: (name, detail) => void (name === 'sample' && seen.push(detail)) });
    await evaluate(training.snapshot(), {
      ...options,
      environment: { ...copyEnvironment, stop: ['\n'] },
      problems: problems.slice(0, 1),
    });
    expect(seen).toMatchObject([{ numSamples: 1, temperature: 0, maxTokens: 1, stop: ['\n'] }]);
  });

  it('leaves out what could not be graded, and gives up on a broken grader', async () => {
    const flaky: Environment = {
      ...copyEnvironment,
      grade: (answer) =>
        answer.problem.id === '0=' ? { status: 'grader_error', error: new Error('x') } : copyEnvironment.grade(answer),
    };
    const sampler = new Bandit().snapshot();
    const lenient = { ...options, environment: flaky, problems, maxGraderErrorShare: 0.5 };
    expect(await evaluate(sampler, lenient)).toMatchObject({ n: 3, correct: 0, graderErrors: 1 });
    expect((await rejection(evaluate(sampler, { ...lenient, maxGraderErrorShare: 0.2 }))).code).toBe('grader_failed');
    expect((await rejection(evaluate(sampler, { ...options, problems: [] }))).code).toBe('invalid_argument');
  });
});
