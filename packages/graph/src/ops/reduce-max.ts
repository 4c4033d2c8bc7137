/** ReduceMax over axes. Its gradient is not written: stop it (stopGradient) where it cancels, as in a stable softmax. */
import type { Value } from '../graph.js';
import { normalizeAxes } from '../shape.js';
import type { OpDefinition } from './definition.js';
import { reduction } from './reduction.js';

export const ReduceMax: OpDefinition = reduction('ReduceMax', 'missing');

export function reduceMax(
  a: Value,
  axes: readonly number[],
  { keepDims = false }: { readonly keepDims?: boolean } = {},
): Value {
  return a.graph.apply('ReduceMax', [a], { axes: normalizeAxes(axes, a.shape.length), keepDims })[0]!;
}
