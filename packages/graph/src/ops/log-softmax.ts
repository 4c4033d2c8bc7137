/** LogSoftmax over the last axis, computed as x − max − log Σ e^(x − max). d/dx = dy − softmax · Σ dy. */
import type { Value } from '../graph.js';
import { show } from '../shape.js';
import { at, type OpDefinition, onlyGrad, requireDtype } from './definition.js';
import { exp } from './exp.js';
import { mul } from './mul.js';
import { reduceSum } from './reduce-sum.js';
import { sub } from './sub.js';

export const LogSoftmax: OpDefinition = {
  infer: (inputs) => {
    const { shape } = at(inputs, 0);
    requireDtype('LogSoftmax', 'the input', at(inputs, 0), 'float32');
    if (shape.length === 0) throw new Error(`LogSoftmax: needs one axis at least, got ${show(shape)}`);
    return [{ dtype: 'float32', shape }];
  },
  gradient: ({ outputs, grads }) => {
    const grad = onlyGrad(grads);
    return [sub(grad, mul(exp(at(outputs, 0)), reduceSum(grad, [-1], { keepDims: true })))];
  },
  lower: (to) => to.emit('LogSoftmax', to.inputs, to.outputs, { axis: { int: -1 } }),
};

export function logSoftmax(a: Value): Value {
  return a.graph.apply('LogSoftmax', [a])[0]!;
}
