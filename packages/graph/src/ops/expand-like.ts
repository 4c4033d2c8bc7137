/** ExpandLike: a stretched to the shape of another value. The gradient is summed over the stretched axes. */
import type { Value } from '../graph.js';
import { broadcast, sameShape, show } from '../shape.js';
import { at, type OpDefinition, onlyGrad } from './definition.js';

export const ExpandLike: OpDefinition = {
  infer: (inputs) => {
    const [a, like] = [at(inputs, 0), at(inputs, 1)];
    if (!sameShape(broadcast('ExpandLike', a.shape, like.shape), like.shape)) {
      throw new Error(`ExpandLike: ${show(a.shape)} does not stretch to ${show(like.shape)}`);
    }
    return [{ dtype: a.dtype, shape: like.shape }];
  },
  gradient: ({ grads }) => [onlyGrad(grads), undefined],
  lower: (to) => {
    const { shape } = at(to.inputTypes, 1);
    // A size that no input has (an axis that Concat made) is read off the other value itself.
    const like = to.input(1);
    const target = to.knowsSizes(shape)
      ? to.shapeVector(shape)
      : to.shared(`shape of ${like}`, (name) => to.emit('Shape', [like], [name]));
    to.emit('Expand', [to.input(0), target], to.outputs);
  },
};

export function expandLike(a: Value, like: Value): Value {
  return sameShape(a.shape, like.shape) ? a : a.graph.apply('ExpandLike', [a, like])[0]!;
}
