/** Staying near a reference, as a loss. */
import type { CustomLoss } from '@loopwright/client';
import { type KlEstimator, klEstimate, klSlope } from '../statistics/kl.js';
import { numberWithin } from '../training/options.js';
import { flat, type ReferencedDatum } from './loss-datum.js';

export interface KlLossOptions {
  /** β. */
  readonly coefficient: number;
  /** Default `k3`, as in GRPO. */
  readonly estimator?: KlEstimator;
}

/**
 * β·Σ w·k(lp − lp_ref) over tokens, for k one of the estimates k1, k2, k3. Its gradient adds to that of the loss that it goes
 * with: call both, then step.
 *
 * Choose by the gradient, not by the value. On tokens that the policy itself sampled, the gradient of k2 is that of the
 * reverse divergence in the mean; k3's is that of the forward one; k1's has mean 0, so it doesn't hold the policy at all
 * (take k1 as part of the reward instead).
 *
 * No mean is taken: a sum over tokens, as the losses beside it. Metrics: `kl/mean`, Σ w·k / Σ w.
 *
 * @see arXiv:2402.03300 (GRPO), equation 4, for k3; arXiv:2506.09477 for what the gradients are
 * @throws at once: `invalid_argument`
 * @example
 * const pass = training.forwardBackward(data, 'importance_sampling');
 * const near = training.forwardBackwardCustom(await withReference(data, base), klLoss({ coefficient: 0.01 }));
 * const update = training.optimStep();
 */
export function klLoss({ coefficient, estimator = 'k3' }: KlLossOptions): CustomLoss<ReferencedDatum> {
  numberWithin('coefficient', coefficient, { min: 0, max: 1e6 });
  return function klLoss(logprobs, data) {
    let total = 0;
    let count = 0;
    const gradients = logprobs.map((row, i) => {
      const { weights, refLogProb } = data[i]!.lossFnInputs; // one for each row
      const [w, reference] = [flat(weights), flat(refLogProb)];
      const [values, slopes] = [klEstimate(estimator, row, reference), klSlope(estimator, row, reference)];
      return w.map((weight, t) => {
        if (weight === 0) return 0;
        total += weight * values[t]!;
        count += weight;
        return coefficient * weight * slopes[t]!;
      });
    });
    return { loss: coefficient * total, gradients, metrics: { 'kl/mean': count === 0 ? 0 : total / count } };
  };
}
