/** ReduceMean over axes of fixed size; the denominator is their product. The gradient is spread and divided by it. */
import type { Value } from '../graph.js';
import { normalizeAxes, staticDim } from '../shape.js';
import { at, type OpDefinition, onlyGrad } from './definition.js';
import { expandLike } from './expand-like.js';
import { mul } from './mul.js';
import { reducedShape, reduction } from './reduction.js';
import { reshape } from './reshape.js';

export const ReduceMean: OpDefinition = reduction('ReduceMean', ({ inputs, attributes, grads }) => {
  const input = at(inputs, 0);
  const axes = attributes.axes as readonly number[];
  const count = axes.reduce((n, axis) => n * staticDim(input.shape, axis), 1);
  const kept = reshape(onlyGrad(grads), reducedShape(input.shape, axes, true));
  return [expandLike(mul(kept, input.graph.scalar(1 / count)), input)];
});

export function reduceMean(
  a: Value,
  axes: readonly number[],
  { keepDims = false }: { readonly keepDims?: boolean } = {},
): Value {
  return a.graph.apply('ReduceMean', [a], { axes: normalizeAxes(axes, a.shape.length), keepDims })[0]!;
}
