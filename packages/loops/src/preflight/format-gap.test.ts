import type { SampleOutput } from '@loopwright/client';
import { expect, it } from 'vitest';
import type { Problem } from '../environments/environment.js';
import { createRandom } from '../random.js';
import { mean } from '../statistics/advantages.js';
import type { Task } from '../tasks/task.js';
import { characterTokenizer } from '../testing/bandit.js';
import type { Sampler } from '../training/clients.js';
import type { FormatGapOptions } from './measure-form.js';
import { preflight } from './preflight.js';
import type { FormatGapForecast, FormRate, PromptRate } from './words.js';

const tokenizer = characterTokenizer();
const train = Array.from(
  { length: 600 },
  (_, i): Problem => ({ id: `${i}`, question: `${100 + i}=`, answer: String(7 * i + 1) }),
);
const heldOut = Array.from(
  { length: 20 },
  (_, i): Problem => ({ id: `h${i}`, question: `${900 + i}=`, answer: String(i) }),
);
const task: Task = {
  name: 'known',
  environment: {
    name: 'known',
    draw: (random) => random.pick(train),
    grade: ({ problem, text }) =>
      /^\d+$/.test(text)
        ? { status: 'ok', reward: text === problem.answer ? 1 : 0 }
        : { status: 'unparsed', reward: 0 },
  },
  ...{ train, heldOut },
};

/** Chances of a problem's answers. */
interface Chances {
  /** To be readable. */
  readonly read: number;
  /** To be right, once readable. */
  readonly right: number;
}

/** By the seed of the request alone, as a server does. */
function sampling(chances: (index: number) => Chances): Sampler & { drawn: number } {
  return {
    drawn: 0,
    async sample(prompt, { numSamples = 1, seed = 0 } = {}): Promise<SampleOutput> {
      const index = Number(tokenizer.decode([...prompt]).slice(0, -1)) - 100;
      const { read, right } = chances(index);
      const random = createRandom(seed);
      this.drawn += numSamples;
      const sequences = Array.from({ length: numSamples }, () => {
        const isRead = random.next() < read;
        const text = isRead ? (random.next() < right ? train[index]!.answer : '0') : 'x';
        const tokens = tokenizer.encode(text);
        return { tokens, logprobs: tokens.map(() => -1), stopReason: 'stop' as const };
      });
      return { sequences };
    },
  };
}

async function measure(
  sampler: Sampler,
  formatGap: FormatGapOptions = {},
  options: { readonly seed?: number; readonly prompts?: number | 'all' } = {},
) {
  const { report } = await preflight(task, { sampler, tokenizer, prompts: 60, ...options, formatGap });
  return {
    report,
    gap: report.formatGap.measured!,
    names: report.findings.map(({ level, name }) => `${level} ${name}`),
  };
}

/** Easy prompts are read less often here, so that shares over all answers mislead: of those read few are right. */
const uneven = (index: number): Chances => (index % 2 === 0 ? { read: 0.3, right: 0.8 } : { read: 0.9, right: 0.1 });

it('measures the known gap, and its interval holds it about as often as it says', async () => {
  const gaps = await Promise.all(
    Array.from({ length: 40 }, (_, seed) => measure(sampling(uneven), { mostDraws: 64 }, { seed, prompts: 100 })),
  );
  const truth = mean([0.8 - 0.3 * 0.8, 0.1 - 0.9 * 0.1]);
  const found = gaps.map(({ gap }) => gap.compared!);
  expect(Math.abs(mean(found.map(({ difference }) => difference)) - truth)).toBeLessThan(0.02);
  expect(Math.abs(mean(found.map(({ readable }) => readable)) - 0.45)).toBeLessThan(0.02);
  const held = found.filter(({ interval: { low, high } }) => low <= truth && truth <= high).length;
  expect(held).toBeGreaterThanOrEqual(34); // of 40 at 95 %: fewer once in 300 times
  // The half of the prompts that is read less often is the better one: what could be read at first says less than half of the gap.
  const atFirst = gaps.map(({ report }) => report.formatGap.ofParsed - report.formatGap.ofAll);
  expect(mean(atFirst)).toBeLessThan(truth / 2);
  expect(gaps.map(({ gap }) => gap.verdict)).toEqual(gaps.map(() => 'form'));
  expect(gaps[0]!.names).toContain('warn preflight/format-gap');
});

it('says that it is not form where unreadable answers are not worth five points', async () => {
  const { gap, names } = await measure(
    sampling(() => ({ read: 0.7, right: 0.03 })),
    {},
    { prompts: 'all' },
  );
  expect(gap.verdict).toBe('not-form');
  expect(gap.compared!.interval.high).toBeLessThan(0.05);
  expect(names).not.toContain('warn preflight/format-gap');
});

it('draws nothing again where all can be read', async () => {
  const sampler = sampling(() => ({ read: 1, right: 0.5 }));
  const { gap } = await measure(sampler);
  expect(sampler.drawn).toBe(60 * 8);
  expect(gap).toMatchObject({ verdict: 'not-form', draws: { count: 0 }, compared: { difference: 0, n: 60 } });
});

it('does not tell from few prompts', async () => {
  const { gap, names } = await measure(
    sampling(() => ({ read: 0.8, right: 0.3 })),
    {},
    { prompts: 12 },
  );
  expect(gap.verdict).toBe('not-distinguishable');
  expect(names).toContain('note preflight/format-gap');
});

it('shows prompts apart that are never read within the bound, and counts them as wrong', async () => {
  const sampler = sampling((index) => (index % 4 === 0 ? { read: 0, right: 1 } : { read: 0.5, right: 0.6 }));
  const { gap } = await measure(sampler, { mostDraws: 5 }, { prompts: 'all' });
  expect(gap.prompts).toEqual({ measured: 600, neverRead: 150 });
  expect(gap.compared).toMatchObject({ n: 450 });
  expect(gap.compared!.readable).toBeCloseTo(0.6, 1);
  expect(gap.atLeast!.n).toBe(600);
  expect(gap.atLeast!.readable).toBeCloseTo(0.75 * gap.compared!.readable, 9);
  expect(gap.atMost!.readable).toBeCloseTo(0.75 * gap.compared!.readable + 0.25, 9);
  expect(gap.answers.neverRead).toBeGreaterThanOrEqual(1200); // 150 × 8, and a few of the others
  expect(sampler.drawn).toBe(600 * 8 + gap.draws.count);
});

it('asks for SFT on the form where hardly a prompt is ever read', async () => {
  const { gap, names } = await measure(
    sampling(() => ({ read: 0, right: 1 })),
    { mostDraws: 3 },
  );
  expect(gap).toMatchObject({ verdict: 'not-distinguishable', prompts: { measured: 60, neverRead: 60 } });
  expect(gap).not.toHaveProperty('compared');
  expect(gap.draws.count).toBe(60 * 8 * 2);
  expect(names).toContain('warn preflight/format-gap');
});

it('goes on where an earlier attempt stopped, comes to the same, and draws anew under another bound', async () => {
  const forms: FormRate[] = [];
  const rates: PromptRate[] = [];
  const keep = { onForm: (form: FormRate) => void forms.push(form) };
  const options = { tokenizer, prompts: 60, onRate: (rate: PromptRate) => void rates.push(rate) };
  const whole = await preflight(task, { ...options, sampler: sampling(uneven), formatGap: keep });
  const by = <T extends { readonly id: string }>(rows: readonly T[]) => new Map(rows.map((row) => [row.id, row]));
  const [measured, half] = [by(rates), by(forms.slice(0, 30))];
  const second = sampling(uneven);
  const again = { tokenizer, prompts: 60, measured };
  expect(await preflight(task, { ...again, sampler: second, formatGap: {}, forms: half })).toEqual(whole);
  expect(second.drawn).toBe(forms.slice(30).reduce((sum, { drawnAgain }) => sum + drawnAgain, 0));
  const third = sampling(uneven);
  await preflight(task, { ...again, sampler: third, formatGap: { mostDraws: 4 }, forms: by(forms) });
  expect(third.drawn).toBeGreaterThan(0);
});

it('tells what an earlier attempt measured without being asked to measure it again, where it did so whole and by one bound', async () => {
  const forms: FormRate[] = [];
  const options = { tokenizer, prompts: 60 };
  const keep = { onForm: (form: FormRate) => void forms.push(form) };
  const { report } = await preflight(task, { ...options, sampler: sampling(uneven), formatGap: keep });
  const told = async (kept: readonly FormRate[]) => {
    const byId = new Map(kept.map((form) => [form.id, form]));
    return (await preflight(task, { ...options, sampler: sampling(uneven), forms: byId })).report.formatGap.measured;
  };
  expect(await told(forms)).toEqual(report.formatGap.measured);
  expect(await told(forms.slice(1))).toBeUndefined();
  expect(await told(forms.map((form, i) => (i === 0 ? { ...form, mostDraws: 4 } : form)))).toBeUndefined();
  expect(await told([])).toBeUndefined();
});

it('tells before what it takes, and takes what it told', async () => {
  let told: FormatGapForecast | undefined;
  const sampler = sampling(uneven);
  const formatGap = {
    onForecast: (forecast: FormatGapForecast) => {
      expect(sampler.drawn).toBe(600 * 8);
      told = forecast;
    },
  };
  const { gap } = await measure(sampler, formatGap, { prompts: 'all' });
  expect(told).toMatchObject({ mostDraws: 16, answers: gap.answers.unreadable });
  expect(told!.draws.low).toBe(gap.answers.unreadable);
  expect(told!.draws.high).toBe(15 * gap.answers.unreadable);
  for (const [forecast, taken] of [
    [told!.draws, gap.draws.count],
    [told!.tokens.sampled, gap.draws.sampledTokens],
    [told!.tokens.prefill, gap.draws.prefillTokens],
  ] as const) {
    expect(taken / forecast.expected).toBeGreaterThan(0.5);
    expect(taken / forecast.expected).toBeLessThan(1.5);
  }
});

it('leaves answers out that the grader fails on, and refuses a bound below two', async () => {
  const failing: Task = {
    ...task,
    environment: {
      name: 'known',
      draw: (random) => random.pick(train),
      grade: ({ text }) => {
        if (text === 'x') return { status: 'unparsed', reward: 0 };
        throw new Error('broken');
      },
    },
  };
  const run = { sampler: sampling(() => ({ read: 0.5, right: 1 })), tokenizer, prompts: 20 };
  const { report } = await preflight(failing, { ...run, formatGap: {} });
  expect(report.formatGap.measured).toMatchObject({
    answers: { neverRead: 0 },
    prompts: { measured: 0, neverRead: 0 },
  });
  await expect(preflight(task, { ...run, formatGap: { mostDraws: 1 } })).rejects.toMatchObject({
    code: 'invalid_argument',
    details: { field: 'options.formatGap.mostDraws' },
  });
});
