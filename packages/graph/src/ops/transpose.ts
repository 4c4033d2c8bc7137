/** Transpose: axes in another order. The gradient goes back by the inverse order. */
import type { Value } from '../graph.js';
import { dim, show } from '../shape.js';
import { at, type OpDefinition, onlyGrad } from './definition.js';

const order = (value: unknown): readonly number[] => value as readonly number[]; // true: only `transpose` below sets it

export const Transpose: OpDefinition = {
  infer: (inputs, attributes) => {
    const { dtype, shape } = at(inputs, 0);
    const axes = order(attributes.axes);
    if ([...axes].sort((a, b) => a - b).some((axis, i) => axis !== i) || axes.length !== shape.length) {
      throw new Error(`Transpose: axes ${show(axes)} do not permute ${show(shape)}`);
    }
    return [{ dtype, shape: axes.map((axis) => dim(shape, axis)) }];
  },
  gradient: ({ attributes, grads }) => {
    const axes = order(attributes.axes);
    return [
      transpose(
        onlyGrad(grads),
        axes.map((_, i) => axes.indexOf(i)),
      ),
    ];
  },
  lower: (to) => to.emit('Transpose', to.inputs, to.outputs, { perm: { ints: order(to.attributes.axes) } }),
};

export function transpose(a: Value, axes: readonly number[]): Value {
  return a.graph.apply('Transpose', [a], { axes })[0]!;
}
