/** Mul: a · b. d/da = b, d/db = a. */
import type { Value } from '../graph.js';
import { at, onlyGrad } from './definition.js';
import { binary } from './elementwise.js';

export const Mul = binary('Mul', ({ inputs, grads, needs }) => {
  const grad = onlyGrad(grads);
  return [needs[0] ? mul(grad, at(inputs, 1)) : undefined, needs[1] ? mul(grad, at(inputs, 0)) : undefined];
});

export function mul(a: Value, b: Value): Value {
  return a.graph.apply('Mul', [a, b])[0]!;
}
