/** Policy gradient with one importance ratio for a whole sequence. */
import type { CustomLoss } from '@loopwright/client';
import { complaint, type DatumFor } from '@loopwright/protocol';
import { valueAndGrad } from '../autodiff/value-and-grad.js';
import { stack } from '../autodiff/variable.js';
import type { RlLossName } from '../datums/rl-datum.js';
import { mean } from '../statistics/advantages.js';
import { numberWithin } from '../training/options.js';
import { flat, tokenCount } from './loss-datum.js';

export interface GspoOptions {
  /** Bounds of the ratio, as for `ppo`; default 1 − 3e-4 and 1 + 4e-4, those of the paper: sequence ratios vary less. */
  readonly clipLowThreshold?: number;
  readonly clipHighThreshold?: number;
}

/**
 * GSPO. With s = exp(mean over the tokens of the answer of (lp − q)), q from sampling and A the advantage of the sequence:
 *
 *     Σ over sequences  −min(s·A, clamp(s, low, high)·A)
 *
 * Denominators: Σ weights of the answer, inside s. Sequences are summed, where the paper takes their mean over each group.
 *
 * Metrics: `ratio/mean` and `ratio/clipped_share` (sequences whose gradient the clip cut off).
 *
 * @see arXiv:2507.18071 (GSPO), equations 5 to 7
 * @throws at once: `invalid_argument`; when called: the same, for advantages that differ within a sequence
 */
export function gspo({
  clipLowThreshold = 1 - 3e-4,
  clipHighThreshold = 1 + 4e-4,
}: GspoOptions = {}): CustomLoss<DatumFor<RlLossName>> {
  numberWithin('clipLowThreshold', clipLowThreshold, { min: 0, max: 1 });
  numberWithin('clipHighThreshold', clipHighThreshold, { min: 1, max: 10 });
  return valueAndGrad(function gspo(logprobs, data: readonly DatumFor<RlLossName>[]) {
    const sequences = data.map((datum, i) => {
      const { weights, logprobs: sampled } = datum.lossFnInputs;
      // Masked positions may hold anything in lp and q; dot leaves them out.
      const ratio = logprobs[i]!.sub(flat(sampled)).dot(flat(weights)).div(tokenCount(datum, i)).exp();
      const advantage = advantageOf(datum, i);
      const [free, clipped] = [ratio.mul(advantage), ratio.clamp(clipLowThreshold, clipHighThreshold).mul(advantage)];
      return { ratio: ratio.value, isClipped: clipped.value < free.value, loss: free.min(clipped).neg() };
    });
    return {
      loss: stack(sequences.map(({ loss }) => loss)).sum(),
      metrics: {
        'ratio/mean': mean(sequences.map(({ ratio }) => ratio)),
        'ratio/clipped_share': mean(sequences.map(({ isClipped }) => (isClipped ? 1 : 0))),
      },
    };
  });
}

function advantageOf({ lossFnInputs: { weights, advantages } }: DatumFor<RlLossName>, index: number): number {
  const perToken = flat(advantages);
  const used = new Set(perToken.filter((_, t) => flat(weights)[t] !== 0));
  const [advantage] = used;
  if (used.size === 1 && advantage !== undefined) return advantage;
  throw complaint({
    field: `data[${index}].lossFnInputs.advantages`,
    expected: 'one advantage for the whole sequence',
    got: `${used.size} different ones`,
    remedy: 'use importance_sampling, ppo or cispo for advantages per token',
  });
}
