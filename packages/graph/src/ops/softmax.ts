/** Softmax over the last axis, P. d/dx = P · (dP − Σ dP·P). */
import type { Value } from '../graph.js';
import { show } from '../shape.js';
import { at, type OpDefinition, onlyGrad, requireDtype } from './definition.js';
import { mul } from './mul.js';
import { reduceSum } from './reduce-sum.js';
import { sub } from './sub.js';

export const Softmax: OpDefinition = {
  infer: (inputs) => {
    const { shape } = at(inputs, 0);
    requireDtype('Softmax', 'the input', at(inputs, 0), 'float32');
    if (shape.length === 0) throw new Error(`Softmax: needs one axis at least, got ${show(shape)}`);
    return [{ dtype: 'float32', shape }];
  },
  gradient: ({ outputs, grads }) => {
    const [p, grad] = [at(outputs, 0), onlyGrad(grads)];
    return [mul(p, sub(grad, reduceSum(mul(grad, p), [-1], { keepDims: true })))];
  },
  lower: (to) => to.emit('Softmax', to.inputs, to.outputs, { axis: { int: -1 } }),
};

export function softmax(a: Value): Value {
  return a.graph.apply('Softmax', [a])[0]!;
}
