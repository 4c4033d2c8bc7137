/** Sub: a − b. d/da = 1, d/db = −1. */
import type { Value } from '../graph.js';
import { onlyGrad } from './definition.js';
import { binary } from './elementwise.js';
import { neg } from './neg.js';

export const Sub = binary('Sub', ({ grads, needs }) => [onlyGrad(grads), needs[1] ? neg(onlyGrad(grads)) : undefined]);

export function sub(a: Value, b: Value): Value {
  return a.graph.apply('Sub', [a, b])[0]!;
}
