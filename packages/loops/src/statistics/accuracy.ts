/** How many were right, and how sure that is. */
import { type Interval, wilsonInterval } from './intervals.js';

export interface Accuracy {
  /** correct / n; NaN where n is 0. */
  readonly accuracy: number;
  readonly correct: number;
  readonly n: number;
  /** Wilson, 95 %; from 0 to 1 where n is 0. */
  readonly interval: Interval;
}

/**
 * @param correct whole number from 0 to `n`
 * @param n those that were judged
 * @throws `invalid_argument` for other numbers
 */
export function accuracyOf(correct: number, n: number): Accuracy {
  const interval = n === 0 && correct === 0 ? { low: 0, high: 1 } : wilsonInterval(correct, n);
  return { accuracy: correct / n, correct, n, interval };
}
