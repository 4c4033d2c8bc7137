/** How far the trainer's log-probabilities of a datum are from those that it was sampled with. */
import { complaint, type DatumFor } from '@loopwright/protocol';
import type { RlLossName } from './rl-datum.js';

/** One token as trainer and sampler see it. */
export interface TokenAgreement {
  /** Of the model input; the token is the target there. */
  readonly position: number;
  readonly tokenId: number;
  readonly trainer: number;
  readonly sampler: number;
  /** trainer − sampler: the logarithm of the importance ratio. NaN or infinite where one of them is. */
  readonly difference: number;
}

export interface Agreement {
  /** Tokens compared: those with a weight other than 0. */
  readonly tokens: number;
  /** Mean of |difference|; 0 without tokens. */
  readonly meanDifference: number;
  /** The token of the largest |difference|, the first of several; one that is not finite is worse than any. Absent without tokens. */
  readonly worst?: TokenAgreement;
}

/**
 * Compares a datum's `logprobs` with those that a pass over it gave, token by token.
 *
 * At equal weights every |difference| stays within 1e-4 on the embedded engine, whatever temperature or truncation was sampled with:
 * log-probabilities are those at temperature 1 over the whole vocabulary. A larger one says that the sampler had other weights, or
 * that prompt or tokens changed between sampling and training. `explain` shows it beside the other tokens.
 *
 * @param trainerLogprobs N: `outputs[i].logprobs` of `forward` or `forwardBackward`, for the i-th datum
 * @throws `invalid_argument` when it is not as long as the datum
 * @example
 * const { outputs } = await training.forward(data, 'importance_sampling');
 * const { worst } = agreement(data[0], outputs[0].logprobs);
 */
export function agreement(datum: DatumFor<RlLossName>, trainerLogprobs: ArrayLike<number>): Agreement {
  const { weights, targetTokens, logprobs } = datum.lossFnInputs;
  const N = datum.modelInput.length;
  checkTrainerLogprobs(trainerLogprobs, N);
  let tokens = 0;
  let sum = 0;
  let worst: TokenAgreement | undefined;
  for (let position = 0; position < N; position++) {
    if (Number(weights[position]) === 0) continue;
    const [trainer, sampler] = [Number(trainerLogprobs[position]), Number(logprobs[position])];
    const difference = trainer - sampler;
    tokens += 1;
    sum += Math.abs(difference);
    if (worst === undefined || badness(difference) > badness(worst.difference))
      worst = { position, tokenId: Number(targetTokens[position]), trainer, sampler, difference };
  }
  return { tokens, meanDifference: tokens === 0 ? 0 : sum / tokens, ...(worst === undefined ? {} : { worst }) };
}

/** @throws `invalid_argument` for numbers of another datum, as far as the length tells */
export function checkTrainerLogprobs(trainerLogprobs: ArrayLike<number>, positions: number): void {
  if (trainerLogprobs.length === positions) return;
  throw complaint({
    field: 'trainerLogprobs',
    expected: `${positions} numbers, one for each position of the datum`,
    got: String(trainerLogprobs.length),
    remedy: 'pass outputs[i].logprobs of the pass that had this datum as its i-th',
  });
}

function badness(difference: number): number {
  return Number.isNaN(difference) ? Number.POSITIVE_INFINITY : Math.abs(difference);
}
