/** Equal: a = b as bool; no gradient. */
import type { Value } from '../graph.js';
import { comparison } from './elementwise.js';

export const Equal = comparison('Equal');

export function equal(a: Value, b: Value): Value {
  return a.graph.apply('Equal', [a, b])[0]!;
}
