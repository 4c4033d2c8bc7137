/** What the losses here read of a datum. */
import type { CustomDatum } from '@loopwright/client';
import { complaint, type NumberArray } from '@loopwright/protocol';
import type { Variable } from '../autodiff/variable.js';

/** A datum with weights, as `sftDatum` and `rlDatum` make it: 0 leaves a position out. */
export interface WeightedDatum extends CustomDatum {
  readonly lossFnInputs: CustomDatum['lossFnInputs'] & { readonly weights: NumberArray };
}

/** With the log-probabilities of a reference model, as `withReference` adds them. */
export interface ReferencedDatum extends WeightedDatum {
  readonly lossFnInputs: WeightedDatum['lossFnInputs'] & {
    /** One per target token. */
    readonly refLogProb: NumberArray;
  };
}

/** Flat: rows one after the other. */
export function flat(values: NumberArray): number[] {
  return Array.from<number | readonly number[]>(values).flat();
}

/** Σ w, by which a mean over the tokens of a datum is divided. @throws `invalid_argument` when it is not above 0 */
export function tokenCount(datum: WeightedDatum, index: number): number {
  const count = flat(datum.lossFnInputs.weights).reduce((sum, weight) => sum + weight, 0);
  if (count > 0) return count;
  throw complaint({
    field: `data[${index}].lossFnInputs.weights`,
    expected: 'numbers that add up to more than 0',
    got: String(count),
    remedy: 'give the tokens of the completion a weight of 1',
  });
}

/** Σ w·lp of a datum: with weights of 0 and 1, the log-probability of its completion. */
export function completionLogprob(logprobs: Variable, datum: WeightedDatum): Variable {
  return logprobs.dot(flat(datum.lossFnInputs.weights));
}

/** The same under the reference, a constant. @throws `invalid_argument` when it isn't as long as the weights */
export function referenceLogprob({ lossFnInputs }: ReferencedDatum, index: number): number {
  const [weights, reference] = [flat(lossFnInputs.weights), flat(lossFnInputs.refLogProb ?? [])];
  if (reference.length !== weights.length) {
    throw complaint({
      field: `data[${index}].lossFnInputs.refLogProb`,
      expected: `${weights.length} numbers, one per target token`,
      got: String(reference.length),
      remedy: 'add them with withReference',
    });
  }
  return weights.reduce((sum, weight, t) => (weight === 0 ? sum : sum + weight * reference[t]!), 0);
}
