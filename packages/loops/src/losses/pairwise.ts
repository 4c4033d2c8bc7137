/** What losses over pairs share: the two sides of each pair, the sum over pairs, the metrics. */
import type { CustomLoss } from '@loopwright/client';
import { complaint } from '@loopwright/protocol';
import { valueAndGrad } from '../autodiff/value-and-grad.js';
import { stack, type Variable } from '../autodiff/variable.js';
import { mean } from '../statistics/advantages.js';
import type { WeightedDatum } from './loss-datum.js';

export interface PairTerms {
  /** Of one pair, one number. */
  readonly loss: Variable;
  /** What the loss takes as the reward of each side; metrics only. */
  readonly chosen: number;
  readonly rejected: number;
}

/** One side of a pair. */
export interface Side<D extends WeightedDatum> {
  readonly logprobs: Variable;
  readonly datum: D;
  /** In `data`. */
  readonly index: number;
}

/**
 * A loss that is a sum over pairs; `data` holds chosen and rejected by turns. Metrics are means over pairs: `reward/chosen`,
 * `reward/rejected`, `reward/margin`, and `reward/accuracy`, the share of pairs with a margin above 0.
 */
export function pairwise<D extends WeightedDatum>(
  name: string,
  termsOf: (chosen: Side<D>, rejected: Side<D>) => PairTerms,
): CustomLoss<D> {
  const loss = (logprobs: readonly Variable[], data: readonly D[]) => {
    if (data.length % 2 !== 0) {
      throw complaint({
        field: 'data',
        expected: `pairs, as ${name} compares: chosen and rejected by turns`,
        got: `${data.length} datums`,
        remedy: 'make them with preferenceData, and cut batches at even places',
      });
    }
    const sides = data.map((datum, index) => ({ logprobs: logprobs[index]!, datum, index }));
    const terms = Array.from({ length: data.length / 2 }, (_, pair) => termsOf(sides[2 * pair]!, sides[2 * pair + 1]!));
    const margins = terms.map(({ chosen, rejected }) => chosen - rejected);
    return {
      loss: stack(terms.map((term) => term.loss)).sum(),
      metrics: {
        'reward/chosen': mean(terms.map(({ chosen }) => chosen)),
        'reward/rejected': mean(terms.map(({ rejected }) => rejected)),
        'reward/margin': mean(margins),
        'reward/accuracy': mean(margins.map((margin) => (margin > 0 ? 1 : 0))),
      },
    };
  };
  return valueAndGrad(Object.defineProperty(loss, 'name', { value: name }));
}
