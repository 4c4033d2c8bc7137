/** Slice: positions start (included) to end (excluded) of one axis of fixed size. The gradient is padded with zeros. */
import type { Value } from '../graph.js';
import { dim, show } from '../shape.js';
import { at, type OpDefinition, onlyGrad } from './definition.js';
import { pad } from './pad.js';

export const Slice: OpDefinition = {
  infer: (inputs, attributes) => {
    const { dtype, shape } = at(inputs, 0);
    const [axis, start, end] = [Number(attributes.axis), Number(attributes.start), Number(attributes.end)];
    const size = shape[axis];
    if (typeof size !== 'number' || start < 0 || end > size || start >= end) {
      throw new Error(`Slice: ${start}..${end} of axis ${axis} is not inside ${show(shape)}`);
    }
    return [{ dtype, shape: shape.map((d, i) => (i === axis ? end - start : d)) }];
  },
  gradient: ({ inputs, attributes, grads }) => {
    const input = at(inputs, 0);
    const [axis, start, end] = [Number(attributes.axis), Number(attributes.start), Number(attributes.end)];
    return [pad(onlyGrad(grads), axis, start, Number(dim(input.shape, axis)) - end)];
  },
  lower: (to) => {
    const { start, end, axis } = to.attributes;
    to.emit(
      'Slice',
      [to.input(0), to.ints([Number(start)]), to.ints([Number(end)]), to.ints([Number(axis)])],
      to.outputs,
    );
  },
};

export function slice(a: Value, axis: number, start: number, end: number): Value {
  const positive = axis < 0 ? axis + a.shape.length : axis;
  if (start === 0 && a.shape[positive] === end) return a;
  return a.graph.apply('Slice', [a], { axis: positive, start, end })[0]!;
}
