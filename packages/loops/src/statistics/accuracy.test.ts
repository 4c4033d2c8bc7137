import { expect, it } from 'vitest';
import { accuracyOf } from './accuracy.js';

it('an accuracy is a share of those judged, with its interval', () => {
  expect(accuracyOf(187, 200)).toMatchObject({ accuracy: 0.935, correct: 187, n: 200 });
  expect(accuracyOf(187, 200).interval.low).toBeCloseTo(0.892, 4);
  expect(accuracyOf(187, 200).interval.high).toBeCloseTo(0.9616, 4);
});

it('of none judged nothing is known', () => {
  expect(accuracyOf(0, 0)).toEqual({ accuracy: Number.NaN, correct: 0, n: 0, interval: { low: 0, high: 1 } });
  expect(() => accuracyOf(1, 0)).toThrow('trials: expected a whole number from 1, got 0');
});
