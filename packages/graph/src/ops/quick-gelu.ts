/**
 * QuickGelu: a·σ(α·a); with α = 1 it is SiLU. The runtime has one kernel for it; the fusion pass makes it of Mul and Sigmoid.
 * d/da = σ + α·a·σ·(1−σ).
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
  gradient: ({ inputs, attributes, grads }) => {
    const a = at(inputs, 0);
    const scaled = mul(a, a.graph.scalar(Number(attributes.alpha)));
    const s = sigmoid(scaled);
    return [mul(onlyGrad(grads), add(s, mul(mul(scaled, s), sub(a.graph.scalar(1), s))))];
  },
  lower: (to) =>
    to.emit('QuickGelu', to.inputs, to.outputs, { alpha: { float: Number(to.attributes.alpha) } }, 'com.microsoft'),
};

export function quickGelu(a: Value, alpha = 1): Value {
  return a.graph.apply('QuickGelu', [a], { alpha })[0]!;
}
