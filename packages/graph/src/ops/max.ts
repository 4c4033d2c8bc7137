/** Max of two: the larger one. The gradient goes to b where a ≤ b, else to a. */
import type { Value } from '../graph.js';
import { at, onlyGrad } from './definition.js';
import { binary } from './elementwise.js';
import { lessOrEqual } from './less-or-equal.js';
import { where } from './where.js';

export const Max = binary('Max', ({ inputs, grads, needs }) => {
  const [a, b, grad] = [at(inputs, 0), at(inputs, 1), onlyGrad(grads)];
  const zero = a.graph.scalar(0);
  const bIsMore = lessOrEqual(a, b);
  return [needs[0] ? where(bIsMore, zero, grad) : undefined, needs[1] ? where(bIsMore, grad, zero) : undefined];
});

export function max(a: Value, b: Value): Value {
  return a.graph.apply('Max', [a, b])[0]!;
}
