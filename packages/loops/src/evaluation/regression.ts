/** Whether a pass rate fell: of a suite of things that must not get worse. */
import type { PairedComparison } from '../statistics/paired.js';

/**
 * `held`: at 95 % it did not fall by more than the margin; `fell`: at 95 % it fell; `undecided`: neither, with so few cases.
 */
export type RegressionOutcome = 'held' | 'fell' | 'undecided';

/** Shares that a pass rate may have fallen by and still count as held. */
export const defaultMargin = 0.05;

export function regressionOutcome({ interval }: PairedComparison, margin: number): RegressionOutcome {
  if (interval.high < 0) return 'fell';
  return interval.low >= -margin ? 'held' : 'undecided';
}
