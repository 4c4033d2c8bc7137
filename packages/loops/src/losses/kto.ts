/** Kahneman–Tversky optimisation: learning from completions that are liked or not, without pairs. */
import type { CustomLoss } from '@loopwright/client';
import { complaint } from '@loopwright/protocol';
import { valueAndGrad } from '../autodiff/value-and-grad.js';
import { stack } from '../autodiff/variable.js';
import { mean } from '../statistics/advantages.js';
import { numberWithin } from '../training/options.js';
import { completionLogprob, type ReferencedDatum, referenceLogprob } from './loss-datum.js';
import type { KtoDatum } from './preference-data.js';

export interface KtoOptions {
  /** How strongly the reference holds; default 0.1. */
  readonly beta?: number;
  /**
   * λ_D, weight of completions that are liked; default 1. Where one kind is rarer, weigh it more: the paper keeps
   * λ_D·n_D / (λ_U·n_U) between 1 and 4/3.
   */
  readonly desirableWeight?: number;
  /** λ_U, of those that aren't; default 1. */
  readonly undesirableWeight?: number;
}

/**
 * KTO. With h = log π(y|x) − log π_ref(y|x), sums over the tokens of the completion:
 *
 *     Σ liked  λ_D·(1 − σ(β·(h − z)))  +  Σ not liked  λ_U·(1 − σ(β·(z − h)))
 *
 * z estimates the divergence from the reference: max(0, mean of h over the mismatched completions of this call), a constant
 * without gradient. Its denominator is the number of mismatched completions, so calls over parts of a batch are not one call
 * over all of it; everything else is a sum over completions.
 *
 * Metrics: `kl/mismatched` (z), `reward/desirable` and `reward/undesirable` (means of β·h; absent without such completions).
 *
 * @see arXiv:2402.01306 (KTO), equation 8
 * @throws at once: `invalid_argument`; when called: the same, without mismatched completions
 * @example training.forwardBackwardCustom(await withReference(ktoData(examples), base), kto());
 */
export function kto({
  beta = 0.1,
  desirableWeight = 1,
  undesirableWeight = 1,
}: KtoOptions = {}): CustomLoss<KtoDatum<ReferencedDatum>> {
  numberWithin('beta', beta, { min: 1e-6, max: 1e6 });
  numberWithin('desirableWeight', desirableWeight, { min: 0, max: 1e6 });
  numberWithin('undesirableWeight', undesirableWeight, { min: 0, max: 1e6 });
  return valueAndGrad(function kto(logprobs, data: readonly KtoDatum<ReferencedDatum>[]) {
    const ratios = data.map((datum, i) => ({
      datum,
      h: completionLogprob(logprobs[i]!, datum).sub(referenceLogprob(datum, i)),
    }));
    const mismatched = ratios.filter(({ datum }) => datum.forwardOnly === true);
    if (mismatched.length === 0) {
      throw complaint({
        field: 'data',
        expected: 'mismatched completions (forwardOnly) beside those to learn from',
        got: 'none',
        remedy: 'make them with ktoData',
      });
    }
    const z = Math.max(0, mean(mismatched.map(({ h }) => h.value)));
    const judged = ratios.filter(({ datum }) => datum.forwardOnly !== true);
    const losses = judged.map(({ datum, h }) =>
      isLiked(datum)
        ? h.sub(z).mul(-beta).sigmoid().mul(desirableWeight)
        : h.sub(z).mul(beta).sigmoid().mul(undesirableWeight),
    );
    const rewards = (desirable: boolean): number[] =>
      judged.filter(({ datum }) => isLiked(datum) === desirable).map(({ h }) => beta * h.value);
    return {
      loss: stack(losses).sum(),
      metrics: {
        'kl/mismatched': z,
        ...meanOf('reward/desirable', rewards(true)),
        ...meanOf('reward/undesirable', rewards(false)),
      },
    };
  });
}

function isLiked(datum: KtoDatum): boolean {
  return 'desirable' in datum && datum.desirable;
}

function meanOf(name: string, values: readonly number[]): Record<string, number> {
  return values.length === 0 ? {} : { [name]: mean(values) };
}
