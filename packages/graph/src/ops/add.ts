/** Add: a + b. d/da = 1, d/db = 1. */
import type { Value } from '../graph.js';
import { onlyGrad } from './definition.js';
import { binary } from './elementwise.js';

export const Add = binary('Add', ({ grads }) => [onlyGrad(grads), onlyGrad(grads)]);

export function add(a: Value, b: Value): Value {
  return a.graph.apply('Add', [a, b])[0]!;
}
