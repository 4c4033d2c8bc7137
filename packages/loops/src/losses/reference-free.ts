/** Losses of preference that need no reference model: SimPO and ORPO. */
import type { CustomLoss } from '@loopwright/client';
import type { Variable } from '../autodiff/variable.js';
import { numberWithin } from '../training/options.js';
import { completionLogprob, tokenCount, type WeightedDatum } from './loss-datum.js';
import { pairwise, type Side } from './pairwise.js';

export interface SimpoOptions {
  /** Default 2. */
  readonly beta?: number;
  /** γ, the margin that the chosen completion is to be ahead by; default 1. */
  readonly gamma?: number;
}

/**
 * SimPO: Σ over pairs −log σ(β·c − β·r − γ), where c and r are the mean log-probabilities of the tokens of the chosen and the
 * rejected completion.
 *
 * Denominators: Σ weights of the completion, for each side; pairs are summed.
 *
 * @see arXiv:2405.14734 (SimPO), equation 6
 * @throws at once: `invalid_argument`
 */
export function simpo({ beta = 2, gamma = 1 }: SimpoOptions = {}): CustomLoss<WeightedDatum> {
  numberWithin('beta', beta, { min: 1e-6, max: 1e6 });
  numberWithin('gamma', gamma, { min: 0, max: 1e6 });
  return pairwise('simpo', (chosen, rejected) => {
    const [c, r] = [meanLogprob(chosen).mul(beta), meanLogprob(rejected).mul(beta)];
    return { loss: c.sub(r).sub(gamma).logSigmoid().neg(), chosen: c.value, rejected: r.value };
  });
}

export interface OrpoOptions {
  /** λ, the weight of the odds ratio beside the likelihood of the chosen completion; default 0.1. */
  readonly lambda?: number;
}

/** Odds of a completion that is certain are infinite: mean log-probabilities count as at most this. */
const mostCertain = -1e-7;

/**
 * ORPO: Σ over pairs −c − λ·log σ(log odds(c) − log odds(r)), where c and r are mean log-probabilities as in {@link simpo} and
 * log odds(x) = x − log(1 − eˣ). In the odds, c and r above −1e-7 count as −1e-7, without a gradient.
 *
 * Denominators: Σ weights of the completion, for each side; pairs are summed.
 *
 * @see arXiv:2403.07691 (ORPO), equations 4, 6 and 7
 * @throws at once: `invalid_argument`
 */
export function orpo({ lambda = 0.1 }: OrpoOptions = {}): CustomLoss<WeightedDatum> {
  numberWithin('lambda', lambda, { min: 0, max: 1e6 });
  return pairwise('orpo', (chosen, rejected) => {
    const [c, r] = [meanLogprob(chosen), meanLogprob(rejected)];
    const loss = logOdds(c).sub(logOdds(r)).logSigmoid().mul(lambda).add(c).neg();
    return { loss, chosen: c.value * lambda, rejected: r.value * lambda };
  });
}

function logOdds(logprob: Variable): Variable {
  const x = logprob.min(mostCertain);
  return x.sub(x.log1mExp());
}

/** Σ w·lp / Σ w */
function meanLogprob({ logprobs, datum, index }: Side<WeightedDatum>): Variable {
  return completionLogprob(logprobs, datum).div(tokenCount(datum, index));
}
