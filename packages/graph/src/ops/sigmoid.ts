/** Sigmoid: σ = 1/(1+e^−a). d/da = σ(1−σ). */
import type { Value } from '../graph.js';
import { at, onlyGrad } from './definition.js';
import { unary } from './elementwise.js';
import { mul } from './mul.js';
import { sub } from './sub.js';

export const Sigmoid = unary('Sigmoid', ({ outputs, grads }) => {
  const y = at(outputs, 0);
  return [mul(onlyGrad(grads), mul(y, sub(y.graph.scalar(1), y)))];
});

export function sigmoid(a: Value): Value {
  return a.graph.apply('Sigmoid', [a])[0]!;
}
