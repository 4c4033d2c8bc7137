/** Whether one model is better than another on the same problems: the mean of paired differences, how sure it is, and how many problems would settle it. */
import { complaint } from '@loopwright/protocol';
import { mean } from './advantages.js';
import { type Interval, wilsonInterval, z } from './intervals.js';

/** The 80 % point of the standard normal distribution, for the power of a larger comparison. */
export const zPower = 0.8416212335729143;
/** Fewer pairs that differ by the very same say nothing of how pairs differ: by chance of signs alone n of them agree 2 · 0.5ⁿ of the time, which is below 5 % from six on. */
const leastEqual = 6;

export type PairedOutcome = 'better' | 'worse' | 'not-distinguishable';

export interface PairedComparison {
  /** Pairs: the denominator of the means. */
  readonly n: number;
  readonly start: number;
  readonly candidate: number;
  /** candidate − start. */
  readonly difference: number;
  /** Of the difference, at 95 %. */
  readonly interval: Interval;
  /** `newcombe`: of values that are all 0 or 1; `student`: of others. */
  readonly method: 'newcombe' | 'student';
  /** `not-distinguishable`: the interval holds 0, or fewer than six pairs differ by the very same, which leaves it without a width. */
  readonly outcome: PairedOutcome;
  /**
   * Pairs in all after which a difference as large as this one is found with a power of 80 %, by the spread of these pairs; absent where it is distinguished
   * already, or where there is no difference to go by.
   */
  readonly neededPairs?: number;
  /** What was compared, in its order. */
  readonly values: { readonly start: readonly number[]; readonly candidate: readonly number[] };
}

/**
 * Compares values of the same problems, such as 1 for right and 0 for wrong, or rewards.
 *
 * @param start of each problem; finite
 * @param candidate of the same problems, in the same order
 * @throws `invalid_argument` for lists of different lengths, fewer than two pairs, or values that are not finite
 * @see Newcombe 1998, doi:10.1002/(SICI)1097-0258(19981130)17:22<2635::AID-SIM954>3.0.CO;2-C (method 10), for values of 0 and 1; Miller 2024,
 *   arXiv:2411.00640, sections 4 and 5, for paired differences of others and for the size of a comparison
 */
export function comparePairs(start: readonly number[], candidate: readonly number[]): PairedComparison {
  const n = start.length;
  if (candidate.length !== n || n < 2)
    throw complaint({
      field: 'pairs',
      expected: 'two values or more of each model, for the same problems',
      got: `${n} and ${candidate.length}`,
    });
  if (![...start, ...candidate].every(Number.isFinite))
    throw complaint({ field: 'pairs', expected: 'finite numbers', got: 'others' });
  const differences = candidate.map((value, i) => value - start[i]!); // of equal length
  const difference = mean(differences);
  const deviation = Math.sqrt(differences.reduce((sum, d) => sum + (d - difference) ** 2, 0) / (n - 1));
  const isBinary = [...start, ...candidate].every((value) => value === 0 || value === 1);
  const half = (studentPoint(n - 1) * deviation) / Math.sqrt(n);
  const interval = isBinary
    ? newcombeInterval(countPairs(start, candidate))
    : { low: difference - half, high: difference + half };
  const hasNoWidth = !isBinary && deviation === 0 && n < leastEqual;
  const outcome = hasNoWidth ? 'not-distinguishable' : outcomeOf(interval);
  const needed = ((z + zPower) * deviation) / difference;
  const isOpen = outcome === 'not-distinguishable' && difference !== 0 && deviation > 0;
  return {
    ...{ n, start: mean(start), candidate: mean(candidate), difference, interval, outcome },
    values: { start, candidate },
    method: isBinary ? 'newcombe' : 'student',
    ...(isOpen ? { neededPairs: Math.max(n + 1, Math.ceil(needed ** 2)) } : {}),
  };
}

function outcomeOf({ low, high }: Interval): PairedOutcome {
  if (low > 0) return 'better';
  return high < 0 ? 'worse' : 'not-distinguishable';
}

/** How often two answers to the same problem were right: both, one of them, none. Whole numbers. */
export interface PairCounts {
  readonly both: number;
  /** Right after, wrong before. */
  readonly gained: number;
  readonly lost: number;
  readonly neither: number;
}

/** Of values that are all 0 or 1. */
export function countPairs(start: readonly number[], candidate: readonly number[]): PairCounts {
  const count = (test: (s: number, c: number) => boolean): number =>
    start.filter((s, i) => test(s, candidate[i]!)).length; // of equal length
  return {
    both: count((s, c) => s === 1 && c === 1),
    gained: count((s, c) => s === 0 && c === 1),
    lost: count((s, c) => s === 1 && c === 0),
    neither: count((s, c) => s === 0 && c === 0),
  };
}

/** Of the difference of two shares of the same trials, from the Wilson intervals of both and their correlation. */
export function newcombeInterval({ both, gained, lost, neither }: PairCounts): Interval {
  const n = both + gained + lost + neither;
  const [p1, p2] = [(both + gained) / n, (both + lost) / n];
  const [w1, w2] = [wilsonInterval(both + gained, n), wilsonInterval(both + lost, n)];
  const product = (both + gained) * (lost + neither) * (both + lost) * (gained + neither);
  const raw = both * neither - gained * lost;
  const corrected = raw > 0 ? Math.max(0, raw - n / 2) : raw;
  const phi = product === 0 ? 0 : corrected / Math.sqrt(product);
  const side = (a: number, b: number): number => Math.sqrt(Math.max(0, a * a - 2 * phi * a * b + b * b));
  const difference = p1 - p2;
  return {
    low: difference - side(p1 - w1.low, w2.high - p2),
    high: difference + side(w1.high - p1, p2 - w2.low),
  };
}

/** For so few degrees of freedom the series is too small: the points themselves, of one on. */
const fewDegrees = [12.706204736432095, 4.302652729696142, 3.182446305284263];

/**
 * The 97.5 % point of Student's distribution; within 0.001.
 *
 * @see Abramowitz and Stegun 1964, 26.7.5
 */
function studentPoint(degrees: number): number {
  const known = fewDegrees[degrees - 1];
  if (known !== undefined) return known;
  const terms = [
    (z ** 3 + z) / 4,
    (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96,
    (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384,
    (79 * z ** 9 + 776 * z ** 7 + 1482 * z ** 5 - 1920 * z ** 3 - 945 * z) / 92_160,
  ];
  return terms.reduce((sum, term, i) => sum + term / degrees ** (i + 1), z);
}
