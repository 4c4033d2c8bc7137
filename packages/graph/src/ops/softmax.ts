/** Softmax over the last axis, P. d/dx = P · (dP − Σ dP·P). */
import type { Value } from '../graph.js';
import { at, type OpDefinition, onlyGrad } from './definition.js';
import { mul } from './mul.js';
import { reduceSum } from './reduce-sum.js';
import { sub } from './sub.js';

export const Softmax: OpDefinition = {
  infer: (inputs) => [{ dtype: 'float32', shape: at(inputs, 0).shape }],
  gradient: ({ outputs, grads }) => {
    const [p, grad] = [at(outputs, 0), onlyGrad(grads)];
    return [mul(p, sub(grad, reduceSum(mul(grad, p), [-1], { keepDims: true })))];
  },
  lower: (to) => to.emit('Softmax', to.inputs, to.outputs, { axis: { int: -1 } }),
};

export function softmax(a: Value): Value {
  return a.graph.apply('Softmax', [a])[0]!;
}
