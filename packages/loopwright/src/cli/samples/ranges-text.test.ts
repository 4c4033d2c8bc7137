import { expect, test } from 'vitest';
import { rangesText } from './ranges-text.js';

test('numbers in a row are a range, and of many parts the first and the last are told', () => {
  expect(rangesText([1, 5, 6, 10, 11, 12, 40])).toBe('1, 5, 6, 10 to 12, 40');
  const every5 = rangesText(Array.from({ length: 200 }, (_, i) => 1 + 5 * i));
  expect(every5).toMatch(/^1, 6, 11, .*, 91, … 996$/);
});
