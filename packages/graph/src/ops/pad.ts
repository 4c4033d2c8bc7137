/** Pad: zeros before and after the values along one axis of fixed size. The gradient is the slice between them. */
import type { Value } from '../graph.js';
import { dim, show } from '../shape.js';
import { at, type OpDefinition, onlyGrad, requireDtype } from './definition.js';

export const Pad: OpDefinition = {
  infer: (inputs, attributes) => {
    const { shape } = at(inputs, 0);
    const [axis, before, after] = [Number(attributes.axis), Number(attributes.before), Number(attributes.after)];
    requireDtype('Pad', 'the input', at(inputs, 0), 'float32');
    const size = shape[axis];
    if (typeof size !== 'number' || before < 0 || after < 0) {
      throw new Error(`Pad: cannot put ${before} zeros before and ${after} after axis ${axis} of ${show(shape)}`);
    }
    return [{ dtype: 'float32', shape: shape.map((d, i) => (i === axis ? before + size + after : d)) }];
  },
  gradient: ({ inputs, attributes, grads }) => {
    const [axis, before] = [Number(attributes.axis), Number(attributes.before)];
    const grad = onlyGrad(grads);
    const end = before + Number(dim(at(inputs, 0).shape, axis));
    return [grad.graph.apply('Slice', [grad], { axis, start: before, end })[0]];
  },
  lower: (to) => {
    const { axis, before, after } = to.attributes;
    to.emit('Pad', [to.input(0), to.ints([Number(before), Number(after)]), '', to.ints([Number(axis)])], to.outputs);
  },
};

export function pad(a: Value, axis: number, before: number, after: number): Value {
  if (before === 0 && after === 0) return a;
  return a.graph.apply('Pad', [a], { axis: axis < 0 ? axis + a.shape.length : axis, before, after })[0]!;
}
