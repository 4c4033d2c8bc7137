/** LessOrEqual: a ≤ b as bool; no gradient. */
import type { Value } from '../graph.js';
import { comparison } from './elementwise.js';

export const LessOrEqual = comparison('LessOrEqual');

export function lessOrEqual(a: Value, b: Value): Value {
  return a.graph.apply('LessOrEqual', [a, b])[0]!;
}
