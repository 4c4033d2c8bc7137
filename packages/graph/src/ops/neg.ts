/** Neg: −a. */
import type { Value } from '../graph.js';
import { onlyGrad } from './definition.js';
import { unary } from './elementwise.js';

export const Neg = unary('Neg', ({ grads }) => [neg(onlyGrad(grads))]);

export function neg(a: Value): Value {
  return a.graph.apply('Neg', [a])[0]!;
}
