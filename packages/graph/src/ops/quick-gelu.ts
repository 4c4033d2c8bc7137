/**
 * QuickGelu: a·σ(α·a); with α = 1 it is SiLU. The runtime has one kernel for it; the fusion pass makes it of Mul and Sigmoid.
 * With y = a·σ: d/da = σ + α·y·(1−σ).
 */
import type { Value } from '../graph.js';
import { add } from './add.js';
import { at, type OpDefinition, onlyGrad, requireDtype } from './definition.js';
import { mul } from './mul.js';
import { sigmoid } from './sigmoid.js';
import { sub } from './sub.js';

export const QuickGelu: OpDefinition = {
  infer: (inputs) => {
    requireDtype('QuickGelu', 'the input', at(inputs, 0), 'float32');
    return [{ dtype: 'float32', shape: at(inputs, 0).shape }];
  },
  gradient: ({ inputs, outputs, attributes, grads }) => {
    const [a, y] = [at(inputs, 0), at(outputs, 0)];
    const alpha = a.graph.scalar(Number(attributes.alpha));
    const s = sigmoid(mul(a, alpha));
    return [mul(onlyGrad(grads), add(s, mul(mul(y, alpha), sub(a.graph.scalar(1), s))))];
  },
  lower: (to) =>
    to.emit('QuickGelu', to.inputs, to.outputs, { alpha: { float: Number(to.attributes.alpha) } }, 'com.microsoft'),
};

export function quickGelu(a: Value, alpha = 1): Value {
  return a.graph.apply('QuickGelu', [a], { alpha })[0]!;
}
