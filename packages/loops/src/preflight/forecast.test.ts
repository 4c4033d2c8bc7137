import { expect, it } from 'vitest';
import { resolveSettings } from '../tasks/settings.js';
import { type ForecastOptions, forecastRun } from './forecast.js';
import type { MeasuredSteps, PromptRate } from './words.js';

const rate: PromptRate = {
  ...{ id: 'one', n: 8, correct: 4, passRate: 0.5, sampled: 8, unparsed: 0, truncated: 0, graderErrors: 0 },
  ...{ promptTokens: 11, completionTokens: 160, prefillTokens: 11, trainingTokens: 240 },
};

/** Answers of 20 tokens after prompts of 11: 30 are trained. */
const options: ForecastOptions = {
  rates: [rate],
  settings: resolveSettings({ groupSize: 8, groupsPerStep: 4, steps: 10, maxTokens: 30 }),
  ...{ deadShare: 0.25, isEpisodes: false, step: undefined, memory: undefined, prices: undefined },
};

/** Two groups of the four: 16 answers of 20 tokens. */
const step: MeasuredSteps = {
  ...{ n: 3, groups: 2, groupSize: 8, rank: 16, sampledTokens: 320, trainingTokens: 480 },
  ...{ collectMs: 1100, graderMs: 100, passMs: 480, updateMs: 200, minMs: 1780, maxMs: 1780 },
};

it('tokens go by measured lengths: half of them to twice, within maxTokens; trained are groups that are not dead, at most all', () => {
  expect(forecastRun(options).tokens).toEqual({
    prefill: { expected: 440, low: 440, high: 440 },
    sampled: { expected: 6400, low: 3200, high: 9600 },
    trained: { expected: 0.75 * 320 * 30, low: 0.375 * 320 * 20, high: 320 * 40 },
  });
});

it('time goes by what steps took: sampling by tokens and groups, passes by tokens that are trained', () => {
  const { seconds } = forecastRun({ ...options, step });
  // Twice the groups: 2 s and the grader's 0.2 s; 720 tokens of a pass that takes 1 ms each; 0.2 s for the update.
  expect(seconds?.expected).toBeCloseTo(10 * (2.2 + 0.72 + 0.2), 9);
  expect(seconds?.low).toBeCloseTo(0.8 * 10 * (1.2 + 0.24 + 0.2), 9);
  expect(seconds?.high).toBeCloseTo(1.5 * 10 * (3.2 + 1.28 + 0.2), 9);
});

it('steps that differed among each other widen the range', () => {
  const even = forecastRun({ ...options, step }).seconds;
  const uneven = forecastRun({ ...options, step: { ...step, minMs: 890, maxMs: 3560 } }).seconds;
  expect(uneven?.expected).toBe(even?.expected);
  expect(uneven?.low).toBeCloseTo((even?.low ?? 0) / 2, 9);
  expect(uneven?.high).toBeCloseTo(2 * (even?.high ?? 0), 9);
});

it('memory is asked for by the answers of a step and the longest prompt, from below by what measured steps held', () => {
  const longer = { ...rate, id: 'two', promptTokens: 50 };
  const bytes = ({ rows, promptTokens, newTokens }: { rows: number; promptTokens: number; newTokens: number }) =>
    rows * (promptTokens + newTokens);
  const { memory } = forecastRun({ ...options, rates: [rate, longer], memory: { limit: 1e9, bytes } });
  expect(memory).toEqual({ expected: 32 * 80, low: 32 * 70, high: 32 * 80, limit: 1e9 });
  const held = { ...step, heldBytes: 1000 };
  const measured = forecastRun({ ...options, rates: [rate, longer], step: held, memory: { limit: 1e9, bytes } }).memory;
  expect(measured).toEqual({ expected: 32 * 80, low: 1000, high: 32 * 80, limit: 1e9, held: 1000 });
});

it('cost goes by the same tokens; without a price of the model there is none', () => {
  const cost = (usage: { prefillTokens: number; sampleTokens: number; trainingTokens: number }) =>
    usage.prefillTokens + 10 * usage.sampleTokens + 100 * usage.trainingTokens;
  const priced = forecastRun({ ...options, prices: { currency: 'EUR', cost } });
  expect(priced.cost).toMatchObject({ expected: 440 + 64_000 + 720_000, currency: 'EUR' });
  expect(forecastRun({ ...options, prices: { currency: 'EUR', cost: () => undefined } })).not.toHaveProperty('cost');
});

it('answers of an episode each have a prompt of their own', () => {
  const { tokens } = forecastRun({ ...options, isEpisodes: true, rates: [{ ...rate, prefillTokens: 400 }] });
  expect(tokens.prefill.expected).toBe(10 * 4 * 8 * 50);
});
