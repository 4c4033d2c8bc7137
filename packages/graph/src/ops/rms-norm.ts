/**
 * RMSNorm over the last axis (arXiv:1910.07467): y = w · x · rsqrt(mean(x²) + ε). Second output: the rsqrt, kept for the gradient.
 * With x̂ = x·rstd and g = dy·w: dx = rstd · (g − x̂ · mean(g·x̂)), dw = Σ dy·x̂ over all rows.
 */
import type { Value } from '../graph.js';
import { sameShape, show } from '../shape.js';
import { at, type OpDefinition, onlyGrad, requireDtype } from './definition.js';
import { mul } from './mul.js';
import { reduceMean } from './reduce-mean.js';
import { reduceSum } from './reduce-sum.js';
import { sub } from './sub.js';

export const RmsNorm: OpDefinition = {
  infer: (inputs) => {
    const [x, weight] = [at(inputs, 0), at(inputs, 1)];
    requireDtype('RmsNorm', 'the input', x, 'float32');
    requireDtype('RmsNorm', 'the weight', weight, 'float32');
    if (x.shape.length === 0 || !sameShape(weight.shape, x.shape.slice(-1))) {
      throw new Error(`RmsNorm: weight ${show(weight.shape)} must be as long as the last axis of ${show(x.shape)}`);
    }
    return [
      { dtype: 'float32', shape: x.shape },
      { dtype: 'float32', shape: [...x.shape.slice(0, -1), 1] },
    ];
  },
  gradient: ({ inputs, outputs, grads, needs }) => {
    const [x, weight, rstd, grad] = [at(inputs, 0), at(inputs, 1), at(outputs, 1), onlyGrad(grads, 'RmsNorm')];
    const normed = mul(x, rstd);
    const g = mul(grad, weight);
    return [
      needs[0] ? mul(rstd, sub(g, mul(normed, reduceMean(mul(g, normed), [-1], { keepDims: true })))) : undefined,
      needs[1]
        ? reduceSum(
            mul(grad, normed),
            x.shape.slice(0, -1).map((_, i) => i),
          )
        : undefined,
    ];
  },
  lower: (to) =>
    to.emit('SimplifiedLayerNormalization', to.inputs, to.outputs, {
      axis: { int: -1 },
      epsilon: { float: Number(to.attributes.epsilon) },
    }),
};

export function rmsNorm(x: Value, weight: Value, epsilon: number): Value {
  return x.graph.apply('RmsNorm', [x, weight], { epsilon })[0]!;
}
