/** Direct preference optimisation, and the variant with a squared loss. */
import type { CustomLoss } from '@loopwright/client';
import { numberWithin } from '../training/options.js';
import { completionLogprob, type ReferencedDatum, referenceLogprob, tokenCount } from './loss-datum.js';
import { pairwise, type Side } from './pairwise.js';

export interface DpoOptions {
  /** How strongly the reference holds; default 0.1. */
  readonly beta?: number;
  /** Share of pairs that may be labelled the wrong way round, 0 to 0.5; default 0. Only for `sigmoid`. */
  readonly labelSmoothing?: number;
  /** Default `sigmoid`; `hinge` as in SLiC-HF. */
  readonly kind?: 'sigmoid' | 'hinge';
}

/**
 * DPO. With h = (log π(chosen) − log π_ref(chosen)) − (log π(rejected) − log π_ref(rejected)), each a sum over the tokens of
 * the completion, and s the label smoothing:
 *
 *     Σ over pairs  −(1 − s)·log σ(β·h) − s·log σ(−β·h)        hinge: Σ max(0, 1 − β·h)
 *
 * A sum over pairs: divide by their number to compare it with means reported elsewhere. Nothing is divided by lengths.
 *
 * @see arXiv:2305.18290 (DPO), equation 7; smoothing: the conservative form of its authors' note, https://ericmitchell.ai/cdpo.pdf;
 *   hinge: arXiv:2305.10425 (SLiC-HF), with the reward of DPO
 * @throws at once: `invalid_argument`
 * @example training.forwardBackwardCustom(await withReference(preferenceData(pairs), base), dpo({ beta: 0.1 }));
 */
export function dpo({
  beta = 0.1,
  labelSmoothing = 0,
  kind = 'sigmoid',
}: DpoOptions = {}): CustomLoss<ReferencedDatum> {
  numberWithin('beta', beta, { min: 1e-6, max: 1e6 });
  numberWithin('labelSmoothing', labelSmoothing, { min: 0, max: 0.5 });
  return pairwise('dpo', (chosen, rejected) => {
    const [c, r] = [logRatio(chosen).mul(beta), logRatio(rejected).mul(beta)];
    const z = c.sub(r);
    const likely = z.logSigmoid().mul(labelSmoothing - 1);
    const smoothed = labelSmoothing === 0 ? likely : likely.sub(z.neg().logSigmoid().mul(labelSmoothing));
    return { loss: kind === 'hinge' ? z.neg().add(1).max(0) : smoothed, chosen: c.value, rejected: r.value };
  });
}

export interface IpoOptions {
  /** τ of the paper; default 0.1. */
  readonly beta?: number;
}

/**
 * IPO: Σ over pairs (h − 1/(2β))², with h as in {@link dpo} but of log-probabilities averaged over the tokens of each
 * completion, as TRL does; the paper's are sums.
 *
 * Denominators: Σ weights of the completion, for each side; pairs are summed.
 *
 * @see arXiv:2310.12036 (IPO), equation 17
 * @throws at once: `invalid_argument`
 */
export function ipo({ beta = 0.1 }: IpoOptions = {}): CustomLoss<ReferencedDatum> {
  numberWithin('beta', beta, { min: 1e-6, max: 1e6 });
  return pairwise('ipo', (chosen, rejected) => {
    const [c, r] = [chosen, rejected].map((side) => logRatio(side).div(tokenCount(side.datum, side.index)));
    return {
      loss: c!
        .sub(r!)
        .sub(1 / (2 * beta))
        .square(),
      chosen: c!.value,
      rejected: r!.value,
    };
  });
}

/** log π(completion) − log π_ref(completion) */
function logRatio({ logprobs, datum, index }: Side<ReferencedDatum>) {
  return completionLogprob(logprobs, datum).sub(referenceLogprob(datum, index));
}
