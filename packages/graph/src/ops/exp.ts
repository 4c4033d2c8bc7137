/** Exp: e^a. d/da = e^a. */
import type { Value } from '../graph.js';
import { at, onlyGrad } from './definition.js';
import { unary } from './elementwise.js';
import { mul } from './mul.js';

export const Exp = unary('Exp', ({ outputs, grads }) => [mul(onlyGrad(grads), at(outputs, 0))]);

export function exp(a: Value): Value {
  return a.graph.apply('Exp', [a])[0]!;
}
