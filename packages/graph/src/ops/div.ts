/** Div: a / b. d/da = 1/b, d/db = −a/b². */
import type { Value } from '../graph.js';
import { at, onlyGrad } from './definition.js';
import { binary } from './elementwise.js';
import { mul } from './mul.js';
import { neg } from './neg.js';

export const Div = binary('Div', ({ inputs, outputs, grads, needs }) => {
  const byA = div(onlyGrad(grads), at(inputs, 1));
  return [needs[0] ? byA : undefined, needs[1] ? neg(mul(byA, at(outputs, 0))) : undefined];
});

export function div(a: Value, b: Value): Value {
  return a.graph.apply('Div', [a, b])[0]!;
}
