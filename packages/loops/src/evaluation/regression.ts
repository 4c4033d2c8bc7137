/** Whether a pass rate fell: of a suite of things that must not get worse. */
import { z } from '../statistics/intervals.js';
import { countPairs, newcombeInterval, type PairCounts, type PairedComparison, zPower } from '../statistics/paired.js';

/**
 * `held`: at 95 % it did not fall by more than the margin; `fell`: at 95 % it fell; `undecided`: neither, with so few cases.
 */
export type RegressionOutcome = 'held' | 'fell' | 'undecided';

/** Shares that a pass rate may have fallen by and still count as held. */
export const defaultMargin = 0.05;

export function regressionOutcome({ interval }: Pick<PairedComparison, 'interval'>, margin: number): RegressionOutcome {
  if (interval.high < 0) return 'fell';
  return interval.low >= -margin ? 'held' : 'undecided';
}

/** More cases than that nobody runs: the rates lie too near the margin to say. */
const mostCases = 1_000_000;

/**
 * About how many cases in all would tell whether a suite fell or held, if further ones come out at the rates of these: where pairs differ with a power of about
 * 80 %, by the same interval. An estimate from few cases is itself as unsure as they are.
 *
 * @returns rounded to two digits; undefined where it is decided, for values that are not all 0 or 1, and where no number that anybody would run is enough
 */
export function casesToSettle(comparison: PairedComparison, margin: number): number | undefined {
  const { n, method, values } = comparison;
  if (method !== 'newcombe' || regressionOutcome(comparison, margin) !== 'undecided') return undefined;
  const counts = countPairs(values.start, values.candidate);
  const isSettled = (size: number): boolean =>
    regressionOutcome({ interval: newcombeInterval(scaled(counts, size / n)) }, margin) !== 'undecided';
  let [low, high] = [n, 2 * n];
  while (!isSettled(high)) {
    if (high > mostCases) return undefined;
    [low, high] = [high, 2 * high];
  }
  while (high - low > Math.max(1, high / 100)) {
    const middle = Math.round((low + high) / 2);
    if (isSettled(middle)) high = middle;
    else low = middle;
  }
  // The width of the interval goes with 1/√n, so that half of all larger comparisons settle it there; no pair that differs leaves no such chance.
  const power = counts.gained + counts.lost === 0 ? 1 : ((z + zPower) / z) ** 2;
  return roundedUp(high * power);
}

function scaled({ both, gained, lost, neither }: PairCounts, factor: number): PairCounts {
  const times = (count: number): number => Math.round(count * factor);
  return { both: times(both), gained: times(gained), lost: times(lost), neither: times(neither) };
}

function roundedUp(count: number): number {
  const unit = 10 ** Math.max(0, Math.floor(Math.log10(count)) - 1);
  return Math.ceil(count / unit) * unit;
}
