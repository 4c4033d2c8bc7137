/** A comparison that can't fail proves nothing. */
import { expect, test } from 'vitest';
import { compare } from './compare.js';
import type { OurAnswer } from './ours.js';

const limit = { largest: 0.1, mean: 0.05 };
const ours: OurAnswer = {
  logprobs: [
    [-1, -2, -3],
    [-4, -5],
  ],
  greedy: [
    [7, 8, 9],
    [1, 2, 3],
  ],
  gaps: [
    [2, 0.15, 2],
    [2, 2, 2],
  ],
  greedyTexts: ['abc', 'xyz'],
  tokens: [[7, 8]],
};

test('two that say the same pass, with sizes of 0', () => {
  expect(compare(ours, ours, limit)).toMatchObject({ largest: 0, mean: 0, count: 5, equalPrompts: 2, faults: [] });
});

test('one log-prob beyond the limit fails, and so do many that are off on average, and none that is no number', () => {
  const off = (...values: number[]) => compare(ours, { ...ours, logprobs: [values, [-4, -5]] }, limit).faults;
  expect(off(-1, -2.2, -3)).toEqual(['a log-prob (-2.0) is off by 2.0e-1']);
  expect(off(-1.09, -2.09, -3.09)).toEqual(['log-probs are off by 5.4e-2 on average']);
  expect(off(-1, Number.NaN, -3).length).toBe(2);
});

test('greedy tokens may part where the two likeliest are within twice the limit, and nowhere else', () => {
  const parting = (...rows: number[][]) => compare(ours, { ...ours, greedy: rows }, limit);
  expect(parting([7, 1, 1], [1, 2, 3])).toMatchObject({ equalPrompts: 1, widestParting: 0.15, faults: [] });
  expect(parting([7, 8, 9], [1, 2, 4]).faults).toEqual([
    'greedy tokens of prompt 2 part at token 3, where the gap is 2.000',
  ]);
});

test('texts of equal tokens and tokens of texts have to be equal', () => {
  expect(compare(ours, { ...ours, greedyTexts: ['abc', 'xy'] }, limit).faults).toEqual([
    'the text of greedy tokens 2 differs',
  ]);
  expect(compare(ours, { ...ours, tokens: [[7, 9]] }, limit).faults).toEqual(['text 1 has other tokens']);
  expect(compare(ours, { ...ours, greedyTexts: undefined, tokens: undefined }, limit).faults).toEqual([
    'only one of the two has a tokenizer',
  ]);
});
