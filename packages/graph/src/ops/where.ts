/** Where: a where the condition holds, else b. The gradient goes where the value came from. */
import type { Value } from '../graph.js';
import { broadcast } from '../shape.js';
import { at, type OpDefinition, onlyGrad, requireDtype } from './definition.js';
import { requireSameDtype } from './elementwise.js';

export const Where: OpDefinition = {
  infer: (inputs) => {
    const [condition, a, b] = [at(inputs, 0), at(inputs, 1), at(inputs, 2)];
    requireDtype('Where', 'the condition', condition, 'bool');
    requireSameDtype('Where', a, b);
    return [{ dtype: a.dtype, shape: broadcast('Where', condition.shape, broadcast('Where', a.shape, b.shape)) }];
  },
  gradient: ({ inputs, grads, needs }) => {
    const condition = at(inputs, 0);
    const zero = condition.graph.scalar(0);
    const grad = onlyGrad(grads);
    return [
      undefined,
      needs[1] ? where(condition, grad, zero) : undefined,
      needs[2] ? where(condition, zero, grad) : undefined,
    ];
  },
  lower: (to) => to.emit('Where', to.inputs, to.outputs),
};

export function where(condition: Value, a: Value, b: Value): Value {
  return condition.graph.apply('Where', [condition, a, b])[0]!;
}
