/** ReduceMax over axes; used where no gradient is wanted (stable softmax, drawing). */
import type { Value } from '../graph.js';
import { normalizeAxes } from '../shape.js';
import type { OpDefinition } from './definition.js';
import { reduction } from './reduction.js';

export const ReduceMax: OpDefinition = reduction('ReduceMax', 'none');

export function reduceMax(
  a: Value,
  axes: readonly number[],
  { keepDims = false }: { readonly keepDims?: boolean } = {},
): Value {
  return a.graph.apply('ReduceMax', [a], { axes: normalizeAxes(axes, a.shape.length), keepDims })[0]!;
}
