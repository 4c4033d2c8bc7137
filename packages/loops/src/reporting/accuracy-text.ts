/** How many were right, in words that say of how many and how sure that is. */

import type { Accuracy } from '../statistics/accuracy.js';

/** `93.5 % right (187 of n = 200, 95 % interval 89.2–96.2 %)`, of what `evaluate` or {@link accuracyOf} gives; the interval is Wilson's. */
export function accuracyText({ accuracy, correct, n, interval }: Accuracy): string {
  const [share, low, high] = [accuracy, interval.low, interval.high].map((each) => (each * 100).toFixed(1));
  return `${share} % right (${correct} of n = ${n}, 95 % interval ${low}–${high} %)`;
}
