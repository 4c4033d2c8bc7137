/** How many were right, in words that say of how many and how sure that is. */

import type { Problem } from '../environments/environment.js';
import type { Evaluation } from '../training/evaluate.js';

/** `93.5 % right (187 of n = 200, 95 % interval 89.2–96.2 %)`, of what `evaluate` gives; the interval is Wilson's. */
export function accuracyText({
  accuracy,
  correct,
  n,
  interval,
}: Pick<Evaluation<Problem>, 'accuracy' | 'correct' | 'n' | 'interval'>): string {
  const [share, low, high] = [accuracy, interval.low, interval.high].map((each) => (each * 100).toFixed(1));
  return `${share} % right (${correct} of n = ${n}, 95 % interval ${low}–${high} %)`;
}
