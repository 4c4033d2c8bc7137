/** What the reductions share: axes as data, shapes with or without the reduced axes. */
import { type Shape, show } from '../shape.js';
import { at, type OpDefinition } from './definition.js';

export function reducedShape(shape: Shape, axes: readonly number[], keepDims: boolean): Shape {
  return keepDims ? shape.map((d, i) => (axes.includes(i) ? 1 : d)) : shape.filter((_, i) => !axes.includes(i));
}

export function reduction(name: string, gradient: OpDefinition['gradient']): OpDefinition {
  return {
    infer: (inputs, attributes) => {
      const { dtype, shape } = at(inputs, 0);
      const axes = attributes.axes as readonly number[]; // true: the builders below set it
      if (axes.length === 0 || axes.some((axis, i) => axis < 0 || axis >= shape.length || axes.indexOf(axis) !== i)) {
        throw new Error(`${name}: axes ${show(axes)} are not distinct axes of ${show(shape)}`);
      }
      return [{ dtype, shape: reducedShape(shape, axes, attributes.keepDims === true) }];
    },
    gradient,
    lower: (to) => {
      const axes = to.attributes.axes as readonly number[];
      to.emit(name, [to.input(0), to.ints(axes)], to.outputs, { keepdims: { int: to.attributes.keepDims ? 1 : 0 } });
    },
  };
}
