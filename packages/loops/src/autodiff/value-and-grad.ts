/** From a loss written with variables to one that gives its gradients. */
import type { CustomDatum, CustomLoss } from '@loopwright/client';
import { complaint } from '@loopwright/protocol';
import { Variable } from './variable.js';

/** What a loss written with variables gives: one number to be lowered, and what else to report. */
export type DifferentiableValue =
  | Variable
  | { readonly loss: Variable; readonly metrics?: Readonly<Record<string, number>> };

/**
 * A loss written with variables.
 *
 * @param logprobs one variable per datum, one number per target token
 */
export type DifferentiableLoss<D extends CustomDatum = CustomDatum> = (
  logprobs: readonly Variable[],
  data: readonly D[],
) => DifferentiableValue;

/**
 * Makes a loss for `forwardBackwardCustom` of one that is written with variables. It keeps the name of the function.
 *
 * @throws when called: `loss_function_failed` when the result is not a variable of one number, or doesn't depend on any
 *   log-probability; `invalid_argument` where lengths don't fit
 * @example
 * const likelihood = valueAndGrad((logprobs) => stack(logprobs.map((lp) => lp.sum())).mean().neg());
 * await training.forwardBackwardCustom(data, likelihood);
 */
export function valueAndGrad<D extends CustomDatum>(loss: DifferentiableLoss<D>): CustomLoss<D> {
  const name = loss.name === '' ? 'loss' : loss.name;
  const evaluate: CustomLoss<D> = (logprobs, data) => {
    const inputs = logprobs.map((row) => new Variable(row));
    const result = loss(inputs, data);
    const { loss: total, metrics = {} } = result instanceof Variable ? { loss: result } : Object(result);
    if (!(total instanceof Variable) || total.length !== 1) {
      const got = total instanceof Variable ? `one of ${total.length}` : typeof total;
      throw complaint({ code: 'loss_function_failed', field: name, expected: 'a variable of one number', got });
    }
    const gradients = gradientsOf(total);
    if (!inputs.some((input) => gradients.has(input))) {
      throw complaint({
        code: 'loss_function_failed',
        field: name,
        expected: 'a loss that is computed from logprobs',
        got: 'a constant',
        remedy: 'use the operations of the variables, not their values, and no stopGradient on all of them',
      });
    }
    return {
      loss: total.value,
      gradients: inputs.map((input) => gradients.get(input) ?? new Float64Array(input.length)),
      metrics,
    };
  };
  return Object.defineProperty(evaluate, 'name', { value: name });
}

/** ∂total/∂v for every variable that `total` was computed from. */
function gradientsOf(total: Variable): ReadonlyMap<Variable, Float64Array> {
  const gradients = new Map<Variable, Float64Array>([[total, Float64Array.of(1)]]);
  for (const variable of fromResultToInputs(total)) {
    const pulled = variable.pull(gradients.get(variable)!); // whatever uses it comes before it
    for (const [i, source] of variable.sources.entries()) {
      const sum = gradients.get(source);
      const part = pulled[i]!;
      gradients.set(source, sum === undefined ? part : sum.map((value, at) => value + part[at]!));
    }
  }
  return gradients;
}

/** Every variable before what it was computed from. A stack of its own: sums of ten thousand terms are as many levels deep. */
function fromResultToInputs(total: Variable): Variable[] {
  const seen = new Set<Variable>([total]);
  const finished: Variable[] = [];
  const open = [{ variable: total, sources: [...total.sources] }];
  for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
    const source = top.sources.pop();
    if (source === undefined) {
      finished.push(top.variable);
      open.pop();
    } else if (!seen.has(source)) {
      seen.add(source);
      open.push({ variable: source, sources: [...source.sources] });
    }
  }
  return finished.reverse();
}
