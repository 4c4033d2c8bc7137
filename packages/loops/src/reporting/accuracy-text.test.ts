import { expect, it } from 'vitest';
import { wilsonInterval } from '../statistics/intervals.js';
import { accuracyText } from './accuracy-text.js';

it('says the share, of how many, and how sure that is', () => {
  const evaluation = { accuracy: 187 / 200, correct: 187, n: 200, interval: wilsonInterval(187, 200) };
  expect(accuracyText(evaluation)).toBe('93.5 % right (187 of n = 200, 95 % interval 89.2–96.2 %)');
});
