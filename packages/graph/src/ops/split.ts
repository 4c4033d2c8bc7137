/** Split along one axis into parts of given sizes, which may be named. The gradient joins the parts; a part without one counts as zeros. */
import type { Value } from '../graph.js';
import { dim, type Shape, show } from '../shape.js';
import { joinedSize } from './concat.js';
import { at, type OpDefinition } from './definition.js';
import { expandLike } from './expand-like.js';
import { parseShape } from './reshape.js';

export const Split: OpDefinition = {
  infer: (inputs, attributes) => {
    const { dtype, shape } = at(inputs, 0);
    const axis = Number(attributes.axis);
    const sizes = parseShape(String(attributes.sizes));
    if (dim(shape, axis) !== joinedSize(sizes))
      throw new Error(`Split: sizes ${show(sizes)} do not fill axis ${axis} of ${show(shape)}`);
    return sizes.map((size) => ({ dtype, shape: shape.map((d, i) => (i === axis ? size : d)) }));
  },
  gradient: ({ outputs, attributes, grads }) => [
    at(outputs, 0).graph.apply(
      'Concat',
      outputs.map((part, i) => grads[i] ?? expandLike(part.graph.scalar(0), part)),
      { axis: Number(attributes.axis) },
    )[0],
  ],
  lower: (to) => {
    const sizes = to.shapeVector(parseShape(String(to.attributes.sizes)));
    to.emit('Split', [to.input(0), sizes], to.allOutputs, { axis: { int: Number(to.attributes.axis) } });
  },
};

export function split(a: Value, axis: number, sizes: Shape): readonly Value[] {
  const positive = axis < 0 ? axis + a.shape.length : axis;
  return a.graph.apply('Split', [a], { axis: positive, sizes: sizes.join(',') });
}
