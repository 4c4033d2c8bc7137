/**
 * Estimates of KL(policy ‖ reference) from the tokens that the policy sampled.
 *
 * d = log p(token) − log p_reference(token), one per token, in nats. Their means estimate the divergence per token.
 * @see http://joschu.net/blog/kl-approx.html
 */
import { complaint } from '@loopwright/protocol';

/** By name, as options take them. */
export type KlEstimator = 'k1' | 'k2' | 'k3';

/** k1 = d: unbiased, of high variance, may be negative. */
export function klK1(logprobs: ArrayLike<number>, referenceLogprobs: ArrayLike<number>): number[] {
  return differences(logprobs, referenceLogprobs);
}

/** k2 = d²/2: biased, of low variance. */
export function klK2(logprobs: ArrayLike<number>, referenceLogprobs: ArrayLike<number>): number[] {
  return differences(logprobs, referenceLogprobs).map((d) => (d * d) / 2);
}

/** k3 = e^(−d) − 1 + d: unbiased, of low variance, never negative. */
export function klK3(logprobs: ArrayLike<number>, referenceLogprobs: ArrayLike<number>): number[] {
  return differences(logprobs, referenceLogprobs).map(k3);
}

/** The estimate of that name. */
export function klEstimate(
  estimator: KlEstimator,
  logprobs: ArrayLike<number>,
  referenceLogprobs: ArrayLike<number>,
): number[] {
  return estimates[estimator](logprobs, referenceLogprobs);
}

/** Its derivative by `logprobs`: 1, d and 1 − e^(−d). */
export function klSlope(
  estimator: KlEstimator,
  logprobs: ArrayLike<number>,
  referenceLogprobs: ArrayLike<number>,
): number[] {
  return differences(logprobs, referenceLogprobs).map(slopes[estimator]);
}

const estimates = { k1: klK1, k2: klK2, k3: klK3 } as const satisfies Record<KlEstimator, unknown>;

const slopes = { k1: () => 1, k2: (d) => d, k3: (d) => -Math.expm1(-d) } as const satisfies Record<
  KlEstimator,
  (d: number) => number
>;

/** e^(−d) − 1 + d; below |d| = 1e-3 by its series, where expm1(−d) + d loses digits to cancellation. */
function k3(d: number): number {
  if (Math.abs(d) > 1e-3) return Math.expm1(-d) + d;
  return d * d * (1 / 2 - d * (1 / 6 - d * (1 / 24 - d * (1 / 120 - d / 720))));
}

function differences(logprobs: ArrayLike<number>, referenceLogprobs: ArrayLike<number>): number[] {
  if (logprobs.length !== referenceLogprobs.length) {
    throw complaint({
      field: 'referenceLogprobs',
      expected: `${logprobs.length} numbers, as many as logprobs`,
      got: String(referenceLogprobs.length),
    });
  }
  return Array.from(logprobs, (logprob, i) => logprob - (referenceLogprobs[i] ?? Number.NaN));
}
