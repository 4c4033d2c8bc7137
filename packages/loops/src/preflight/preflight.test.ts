import type { SampleOutput } from '@loopwright/client';
import { describe, expect, it } from 'vitest';
import type { Problem } from '../environments/environment.js';
import type { Task } from '../tasks/task.js';
import { characterTokenizer } from '../testing/bandit.js';
import type { Sampler } from '../training/clients.js';
import { expectedDeadShare, passRateHistogram } from './dead-groups.js';
import { type PreflightOptions, preflight } from './preflight.js';
import type { MeasuredSteps, PromptRate } from './words.js';

const tokenizer = characterTokenizer();
const sum = (a: number, b: number): Problem => ({ id: `${a}+${b}`, question: `${a}+${b}=`, answer: String(a + b) });
const train = Array.from({ length: 600 }, (_, i) => sum(100 + i, 50));
const heldOut = Array.from({ length: 20 }, (_, i) => sum(100 + i, 51));
const grade: Extract<Task['environment'], { grade: unknown }>['grade'] = ({ problem, text }) =>
  /^\d+$/.test(text) ? { status: 'ok', reward: text === problem.answer ? 1 : 0 } : { status: 'unparsed', reward: 0 };

/** Right in `right` of eight answers, unreadable in `unread`, otherwise 0; `cut` of them by the limit. */
function sampling({ right = 4, unread = 0, cut = 0 } = {}): Sampler & { asked: number } {
  return {
    asked: 0,
    async sample(prompt, { numSamples = 1 } = {}): Promise<SampleOutput> {
      this.asked += 1;
      const [a = 0, b = 0] = tokenizer
        .decode([...prompt])
        .split(/[+=]/)
        .map(Number);
      const sequences = Array.from({ length: numSamples }, (_, i) => {
        const tokens = tokenizer.encode(i < right ? String(a + b) : i < right + unread ? 'x' : '0');
        return {
          tokens,
          logprobs: tokens.map(() => -1),
          stopReason: i < cut ? ('length' as const) : ('stop' as const),
        };
      });
      return { sequences };
    },
  };
}

const clean: Task = {
  name: 'sums',
  environment: { name: 'sums', draw: (random) => random.pick(train), grade },
  train,
  heldOut,
};

const measured: MeasuredSteps = {
  ...{ n: 3, groups: 8, groupSize: 8, rank: 16, sampledTokens: 64, trainingTokens: 640 },
  ...{ collectMs: 100, graderMs: 0, passMs: 200, updateMs: 50, minMs: 340, maxMs: 360 },
};

async function findings(task: Task, sampler: Sampler = sampling(), extra: Partial<PreflightOptions> = {}) {
  const { report } = await preflight(task, { sampler, tokenizer, prompts: 40, ...extra });
  return { outcome: report.outcome, names: report.findings.map(({ name, level }) => `${level} ${name}`) };
}

describe('preflight', () => {
  it('lets a clean task go without a word, with its rates and what a run will take', async () => {
    const { report, rates, useful } = await preflight(clean, { sampler: sampling(), tokenizer, prompts: 40 });
    expect(report).toMatchObject({
      outcome: 'go',
      findings: [],
      prompts: { train: 600, measured: 40, useful: 40 },
      passRate: { share: 0.5, correct: 160, n: 320 },
    });
    expect(report.histogram[5]).toBe(40);
    expect(rates[0]).toMatchObject({ n: 8, correct: 4, passRate: 0.5, promptTokens: 7 });
    expect(useful).toHaveLength(40);
    const { sampled } = report.forecast.tokens;
    expect(sampled.expected).toBe(64 * 100 * 2); // half of the answers have three characters, half one
    expect(sampled.low).toBeLessThan(sampled.expected);
    expect(sampled.high).toBe(2 * sampled.expected);
  });

  const throwing = (share: number): Task => ({
    ...clean,
    environment: {
      ...clean.environment,
      grade: (answer: Parameters<typeof grade>[0]) => {
        if (train.indexOf(answer.problem) % 10 < 10 * share) throw new Error('broken');
        return grade(answer);
      },
    } as Task['environment'], // true: with grade
  });
  const faults: readonly (readonly [string, Task, Sampler?, Partial<PreflightOptions>?])[] = [
    ['stop preflight/few-prompts', { ...clean, train: train.slice(0, 99) }],
    ['warn preflight/few-prompts', { ...clean, train: train.slice(0, 499) }],
    ['stop preflight/grader-fails', throwing(0.2)],
    ['stop preflight/never-right', clean, sampling({ right: 0 })],
    ['stop preflight/solved', clean, sampling({ right: 8 })],
    ['warn preflight/format-gap', clean, sampling({ right: 4, unread: 3 })],
    [
      'stop preflight/memory',
      clean,
      sampling(),
      { memory: { limit: 1e9, bytes: ({ rows }: { rows: number }) => rows * 1e9 } },
    ],
    [
      'warn preflight/memory',
      clean,
      sampling(),
      { memory: { limit: 1e9, bytes: ({ newTokens }: { newTokens: number }) => newTokens * 5e7 } },
    ],
    [
      'warn preflight/slow-grader',
      { ...clean, settings: { groupsPerStep: 64 } },
      sampling(),
      { step: { ...measured, groups: 64, graderMs: 40 } },
    ],
    ['stop preflight/prompt-too-long', clean, sampling(), { contextLength: 70 }],
    [
      'stop preflight/answer-in-prompt',
      { ...clean, train: train.map((p) => ({ ...p, question: `${p.question}${p.answer}` })) },
    ],
    ['warn preflight/duplicates', { ...clean, train: [...train, { ...train[0]!, id: 'again' }] }],
    ['warn preflight/no-held-out', { name: 'sums', environment: clean.environment, train }],
    ['stop preflight/held-out-leak', { ...clean, heldOut: [{ ...train[3]!, id: 'other' }] }],
  ];

  const named = faults.map(([name, task, sampler, extra]) => ({ name, task, sampler, extra }));

  it.each(named)('raises $name for its own fault, and nothing else', async ({ name, task, sampler, extra }) => {
    const found = await findings(task, sampler, extra);
    expect(found.names).toEqual([name]);
    expect(found.outcome).toBe(name.startsWith('stop') ? 'no-go' : 'go');
  });

  it('warns of dead groups, and of answers that are cut', async () => {
    expect((await findings({ ...clean, settings: { groupSize: 2 } }, sampling({ right: 1 }))).names).toEqual([
      'warn preflight/dead-groups',
    ]);
    expect((await findings(clean, sampling({ right: 4, unread: 1, cut: 8 }))).names).toEqual([
      'warn preflight/truncated',
    ]);
  });

  it('goes on where an earlier attempt stopped, and comes to the same', async () => {
    const kept = new Map<string, PromptRate>();
    const options = { tokenizer, prompts: 40 };
    const whole = await preflight(clean, {
      ...options,
      sampler: sampling(),
      onRate: (rate) => void kept.set(rate.id, rate),
    });
    const half = new Map([...kept].slice(0, 25));
    const second = sampling();
    expect(await preflight(clean, { ...options, sampler: second, measured: half })).toEqual(whole);
    expect(second.asked).toBe(15);
  });

  it('makes each prompt once, whatever looks at it', async () => {
    const made = new Map<string, number>();
    const prompt = (problem: Problem) => {
      made.set(problem.id, (made.get(problem.id) ?? 0) + 1);
      return tokenizer.encode(problem.question);
    };
    const environment = { ...clean.environment, prompt } as Task['environment']; // true: with grade
    await preflight(
      { ...clean, environment },
      { sampler: sampling({ right: 4, unread: 3 }), tokenizer, prompts: 40, contextLength: 200, formatGap: {} },
    );
    expect([...made.values()]).toEqual(train.map(() => 1));
  });

  it('does not ask for answers to prompts that the model has no room for', async () => {
    const long = { ...train[0]!, id: 'long', question: `${'1+'.repeat(100)}1=` };
    const sampler = sampling();
    const options = { sampler, tokenizer, prompts: 'all', contextLength: 200 } as const;
    const { report } = await preflight({ ...clean, train: [...train, long] }, options);
    expect(report.prompts).toMatchObject({ train: 601, measured: 600 });
    expect(report.findings.map(({ name }) => name)).toEqual(['preflight/prompt-too-long']);
    await expect(preflight({ ...clean, train: [long] }, options)).rejects.toMatchObject({
      code: 'context_length_exceeded',
      details: { field: 'task.train' },
    });
  });

  it('ends early where the grader fails on all, with the first failure as cause', async () => {
    const sampler = sampling();
    const run = preflight(throwing(1), { sampler, tokenizer, prompts: 40, concurrency: 1 });
    const expected = {
      code: 'grader_failed',
      details: { got: 'failures for all of the first 10 prompts' },
      cause: new Error('broken'),
    };
    await expect(run).rejects.toMatchObject(expected);
    expect(sampler.asked).toBe(10);
  });

  it('measures prompts again of which nothing could be graded', async () => {
    const kept = new Map<string, PromptRate>();
    const onRate = (rate: PromptRate) => void kept.set(rate.id, rate);
    await preflight(throwing(0.2), { sampler: sampling(), tokenizer, prompts: 40, onRate });
    const failed = [...kept.values()].filter(({ n }) => n === 0).length;
    const second = sampling();
    const { report } = await preflight(clean, { sampler: second, tokenizer, prompts: 40, measured: kept });
    expect(second.asked).toBe(failed);
    expect(report.passRate.n).toBe(320);
  });

  it('ends with the signal', async () => {
    const signal = AbortSignal.abort();
    await expect(preflight(clean, { sampler: sampling(), tokenizer, signal })).rejects.toMatchObject({
      code: 'cancelled',
    });
  });
});

it('expected dead groups are those of the posterior', () => {
  // Beta(4.5, 4.5), G = 2: E[p²] = 4.5 · 5.5 / (9 · 10), twice.
  expect(expectedDeadShare([{ correct: 4, n: 8 }], 2)).toBeCloseTo((2 * 4.5 * 5.5) / 90, 12);
  // With much data p^G + (1 − p)^G.
  expect(expectedDeadShare([{ correct: 30_000, n: 100_000 }], 8)).toBeCloseTo(0.3 ** 8 + 0.7 ** 8, 4);
  // A hard set: two prompts of a hundred were ever solved, so hardly a group will be mixed.
  const hard = [...Array.from({ length: 98 }, () => 0), 1, 2].map((correct) => ({ correct, n: 8 }));
  expect(expectedDeadShare(hard, 4)).toBeGreaterThan(0.98);
  expect(passRateHistogram([0, 0.05, 0.3, 0.95, 1])).toEqual([2, 0, 0, 1, 0, 0, 0, 0, 0, 2]);
});
