/** Reshape: the same values in row-major order under another shape. The gradient is reshaped back. */
import type { Value } from '../graph.js';
import { canonical, product, type Shape, sameShape, show } from '../shape.js';
import { at, type OpDefinition, onlyGrad } from './definition.js';

export const Reshape: OpDefinition = {
  infer: (inputs, attributes) => {
    const input = at(inputs, 0);
    const shape = parseShape(String(attributes.shape));
    if (product(input.shape) !== product(shape)) {
      throw new Error(
        `Reshape: ${show(input.shape)} has ${product(input.shape)} values, ${show(shape)} has ${product(shape)}`,
      );
    }
    return [{ dtype: input.dtype, shape }];
  },
  gradient: ({ inputs, grads }) => [reshape(onlyGrad(grads), at(inputs, 0).shape)],
  lower: (to) =>
    to.emit('Reshape', [to.input(0), to.reshapeTarget(to.inputTypes[0]!.shape, to.outputTypes[0]!.shape)], to.outputs),
};

/** Attributes are plain data, so a shape travels as text; names of sizes contain no comma. */
export function parseShape(text: string): Shape {
  return text === '' ? [] : canonical(text.split(','));
}

export function reshape(a: Value, shape: Shape): Value {
  if (sameShape(a.shape, shape)) return a;
  return a.graph.apply('Reshape', [a], { shape: shape.join(',') })[0]!;
}
