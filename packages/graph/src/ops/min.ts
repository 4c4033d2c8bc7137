/** Min of two: the smaller one. The gradient goes to a where a ≤ b, else to b (as PyTorch splits ties in halves, ties only matter where both have the same slope). */
import type { Value } from '../graph.js';
import { at, onlyGrad } from './definition.js';
import { binary } from './elementwise.js';
import { lessOrEqual } from './less-or-equal.js';
import { where } from './where.js';

export const Min = binary('Min', ({ inputs, grads, needs }) => {
  const [a, b, grad] = [at(inputs, 0), at(inputs, 1), onlyGrad(grads)];
  const zero = a.graph.scalar(0);
  const aIsLess = lessOrEqual(a, b);
  return [needs[0] ? where(aIsLess, grad, zero) : undefined, needs[1] ? where(aIsLess, zero, grad) : undefined];
});

export function min(a: Value, b: Value): Value {
  return a.graph.apply('Min', [a, b])[0]!;
}
