/** How many groups will teach nothing, from the pass rates of prompts. */
import { complaint } from '@loopwright/protocol';

/** What was measured of a prompt: `correct` of `n` completions. */
export interface PassCount {
  readonly correct: number;
  readonly n: number;
}

/** Weight of the prior, in completions: few samples never say that a prompt is always or never solved. As much as Jeffreys' prior has. */
const priorWeight = 1;

/**
 * Expected share of groups of G completions that are all right or all wrong: mean over prompts of E[p^G + (1 − p)^G]. Each p has the posterior
 * Beta(correct + m, n − correct + 1 − m), where m is the share of all completions that are right, (Σ correct + ½) / (Σ n + 1): a prior of the
 * weight of one completion, about what the other prompts say (empirical Bayes). Jeffreys' own, about a half, would take a prompt without a right
 * answer among eight for one of 6 %, whatever the others are. Rewards are taken as right or wrong, and prompts as drawn equally often.
 *
 * @returns from 0 to 1; NaN without prompts
 * @throws `invalid_argument` for a group of fewer than 2
 */
export function expectedDeadShare(counts: readonly PassCount[], groupSize: number): number {
  if (!Number.isInteger(groupSize) || groupSize < 2)
    throw complaint({ field: 'groupSize', expected: 'a whole number from 2', got: String(groupSize) });
  const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
  const share = (sum(counts.map(({ correct }) => correct)) + 0.5) / (sum(counts.map(({ n }) => n)) + 1);
  const dead = counts.map(({ correct, n }) => {
    const [a, b] = [correct + priorWeight * share, n - correct + priorWeight * (1 - share)];
    return moment(a, a + b, groupSize) + moment(b, a + b, groupSize);
  });
  return sum(dead) / counts.length;
}

/** E[x^G] of Beta(a, total − a): Π (a + i) / (total + i). */
function moment(a: number, total: number, groupSize: number): number {
  let product = 1;
  for (let i = 0; i < groupSize; i++) product *= (a + i) / (total + i);
  return product;
}

/** Prompts by pass rate in ten parts of 0 to 1; the last holds 1 too. */
export function passRateHistogram(rates: readonly number[]): number[] {
  const bins = new Array<number>(10).fill(0);
  for (const rate of rates) bins[Math.min(9, Math.floor(rate * 10 + 1e-9))]! += 1; // 0.3 × 10 is 3 but for rounding
  return bins;
}
