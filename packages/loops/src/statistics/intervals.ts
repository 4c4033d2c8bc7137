/** How sure an accuracy is. */
import { complaint } from '@loopwright/protocol';

export interface Interval {
  readonly low: number;
  readonly high: number;
}

/** The 97.5 % point of the standard normal distribution. */
export const z = 1.959963984540054;

/**
 * Wilson score interval of a share at 95 %: sound for few trials and near 0 and 1, where the usual ± is not.
 *
 * @param successes whole number from 0 to `trials`
 * @param trials whole number from 1
 * @throws `invalid_argument` for other numbers
 * @see Wilson 1927, doi:10.1080/01621459.1927.10502953
 */
export function wilsonInterval(successes: number, trials: number): Interval {
  if (!Number.isInteger(trials) || trials < 1) {
    throw complaint({ field: 'trials', expected: 'a whole number from 1', got: String(trials) });
  }
  if (!Number.isInteger(successes) || successes < 0 || successes > trials) {
    throw complaint({ field: 'successes', expected: `a whole number from 0 to ${trials}`, got: String(successes) });
  }
  const share = successes / trials;
  const denominator = 1 + (z * z) / trials;
  const center = (share + (z * z) / (2 * trials)) / denominator;
  const half = (z / denominator) * Math.sqrt((share * (1 - share)) / trials + (z * z) / (4 * trials * trials));
  return { low: Math.max(0, center - half), high: Math.min(1, center + half) };
}

/**
 * Interval of a ratio of sums, Σ numerators / Σ denominators, at 95 %: such as a mean loss per token, over examples of different lengths. Its error is
 * estimated by linearisation, over pairs that are independent; NaN where there are fewer than two.
 *
 * @see Cochran, Sampling Techniques (1977), section 6.4
 */
export function ratioInterval(numerators: readonly number[], denominators: readonly number[]): Interval {
  const n = numerators.length;
  const whole = sum(denominators);
  const ratio = sum(numerators) / whole;
  if (n < 2) return { low: Number.NaN, high: Number.NaN };
  const squares = numerators.map((value, i) => (value - ratio * (denominators[i] ?? Number.NaN)) ** 2);
  const half = (z * Math.sqrt((sum(squares) * n) / (n - 1))) / whole;
  return { low: ratio - half, high: ratio + half };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
