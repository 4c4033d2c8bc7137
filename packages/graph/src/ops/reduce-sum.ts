/** ReduceSum over axes. The gradient is spread over them again. */
import type { Value } from '../graph.js';
import { normalizeAxes } from '../shape.js';
import { at, type OpDefinition, onlyGrad } from './definition.js';
import { expandLike } from './expand-like.js';
import { reducedShape, reduction } from './reduction.js';
import { reshape } from './reshape.js';

export const ReduceSum: OpDefinition = reduction('ReduceSum', ({ inputs, attributes, grads }) => {
  const input = at(inputs, 0);
  const kept = reducedShape(input.shape, attributes.axes as readonly number[], true);
  return [expandLike(reshape(onlyGrad(grads), kept), input)];
});

export function reduceSum(
  a: Value,
  axes: readonly number[],
  { keepDims = false }: { readonly keepDims?: boolean } = {},
): Value {
  return a.graph.apply('ReduceSum', [a], { axes: normalizeAxes(axes, a.shape.length), keepDims })[0]!;
}
