import { expect, it } from 'vitest';
import type { Problem } from '../environments/environment.js';
import type { EpisodeEnvironment, Reply } from '../episodes/environment.js';
import type { Task } from '../tasks/task.js';
import { Bandit, characterTokenizer, copyEnvironment, copyProblem } from '../testing/bandit.js';
import { preflight } from './preflight.js';

const tokenizer = characterTokenizer('{% for m in messages %}{{ m.content }}{% endfor %}');
const train = [0, 1, 2, 3].map(copyProblem);

/** A clock that moves by what calls are said to take, and by nothing else. */
function world(takes: Readonly<Record<string, number>>) {
  let at = 0;
  const training = new Bandit({
    onCall: (name) => {
      at += takes[name] ?? 0;
    },
  });
  const spend = (ms: number): void => {
    at += ms;
  };
  return { training, sampler: new Bandit().snapshot(), now: () => at, spend };
}

const settings = { groupSize: 4, groupsPerStep: 3, maxTokens: 1, steps: 10 };

it('three steps are measured after one to get warm: sampling, grading, the pass and the update apart', async () => {
  const { training, sampler, now, spend } = world({
    sample: 10,
    'forward-backward': 50,
    'optim-step': 5,
    'save-weights': 2,
  });
  const task: Task = {
    ...{ name: 'copy', train, settings },
    environment: {
      ...copyEnvironment,
      grade: async (answer) => {
        await Promise.resolve(); // behind the sampling
        spend(1);
        return copyEnvironment.grade(answer);
      },
    } as Task['environment'], // true: of one answer
  };
  const { report } = await preflight(task, { sampler, tokenizer, training, now });
  expect(training.calls.filter((name) => name === 'optim-step')).toHaveLength(4);
  expect(report.step).toMatchObject({ n: 3, groups: 3, groupSize: 4, sampledTokens: 12 });
  expect(report.step).toMatchObject({ passMs: 50, updateMs: 7, trainingTokens: 24 });
  const { collectMs = 0, graderMs = 0 } = report.step ?? {};
  expect(collectMs).toBe(3 * 10 + 12 * 1);
  expect(graderMs).toBeGreaterThan(0);
  expect(graderMs).toBeLessThanOrEqual(12);
  expect(report.forecast.seconds?.expected).toBeLessThan((10 * (42 + 50 + 7)) / 1000 + 1e-9);
});

it('the weights are moved by next to nothing', async () => {
  const { training, sampler, now } = world({});
  const before = structuredClone(training.weights);
  await preflight(
    { name: 'copy', train, settings, environment: copyEnvironment },
    { sampler, tokenizer, training, now },
  );
  const moved = training.weights.flatMap((row, i) => row.map((weight, j) => Math.abs(weight - before[i]![j]!)));
  expect(Math.max(...moved)).toBeLessThan(1e-6);
});

it('what an earlier attempt measured is taken, unless the settings are others', async () => {
  const task: Task = { name: 'copy', train, settings, environment: copyEnvironment };
  const first = world({ sample: 10, 'forward-backward': 50 });
  const { step } = (await preflight(task, { ...first, tokenizer })).report;
  const second = world({ sample: 10 });
  const again = await preflight(task, { ...second, tokenizer, step: step! });
  expect(again.report.step).toEqual(step);
  expect(second.training.calls).toEqual([]);
  const other = { ...task, settings: { ...settings, groupSize: 8 } };
  await preflight(other, { ...second, tokenizer, step: step! });
  expect(second.training.calls).toContain('optim-step');
});

/** `3=` is to be answered by 3; whoever is wrong is asked once more. */
const secondTry: EpisodeEnvironment<Problem> = {
  name: 'second-try',
  draw: (random) => random.pick(train),
  begin: ({ question, answer }) => ({
    messages: [{ role: 'user', content: question }],
    respond: ({ index, text }): Reply => {
      if (text === answer) return { grade: { status: 'ok', reward: 1 } };
      return index === 1 ? { grade: { status: 'ok', reward: 0 } } : { messages: [{ role: 'user', content: '?' }] };
    },
  }),
};

it('a completion of a task of several turns is an episode, with the prompts of all its answers', async () => {
  const { training, sampler, now } = world({ sample: 10 });
  const task: Task = { name: 'twice', train, settings, environment: secondTry };
  const { report, rates } = await preflight(task, { sampler, tokenizer, training, now, seed: 3 });
  expect(report.passRate.n).toBe(32);
  for (const { sampled, promptTokens, completionTokens, prefillTokens, trainingTokens } of rates) {
    expect(sampled).toBe(8);
    expect(promptTokens).toBe(2);
    const second = completionTokens - 8; // episodes that were asked once more
    expect(prefillTokens).toBe(8 * 2 + second * 4);
    expect(trainingTokens).toBe(8 * 2 + second * 2);
  }
  expect(rates.some(({ completionTokens }) => completionTokens > 8)).toBe(true);
  expect(report.step?.n).toBe(3);
  const alone = await preflight(task, { sampler, tokenizer, seed: 3 });
  expect(alone.rates).toEqual(rates);
});

it('an episode that its environment breaks could not be graded; one that runs into its limit of turns is wrong', async () => {
  const broken: EpisodeEnvironment<Problem> = { ...secondTry, begin: () => Promise.reject(new Error('broken')) };
  const { sampler } = world({});
  const task = (environment: EpisodeEnvironment<Problem>): Task => ({ name: 'twice', train, settings, environment });
  const { report } = await preflight(task(broken), { sampler, tokenizer });
  expect(report.passRate.n).toBe(0);
  expect(report.findings.map(({ name }) => name)).toContain('preflight/grader-fails');
  const endless: EpisodeEnvironment<Problem> = {
    ...secondTry,
    begin: ({ question }) => ({
      messages: [{ role: 'user', content: question }],
      respond: () => ({ messages: [{ role: 'user', content: '?' }] }),
    }),
  };
  const cut = (await preflight(task(endless), { sampler, tokenizer })).report;
  expect(cut.passRate).toMatchObject({ n: 32, correct: 0 });
});
