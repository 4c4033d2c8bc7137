/** TopK over the last axis, largest first: values and int64 indices [.., k]. Its gradient is not written; gather by the indices to get one. */
import type { Value } from '../graph.js';
import { show } from '../shape.js';
import { at, type OpDefinition, requireDtype } from './definition.js';

export const TopK: OpDefinition = {
  infer: (inputs, attributes) => {
    const input = at(inputs, 0);
    const [width, k] = [input.shape.at(-1), Number(attributes.k)];
    requireDtype('TopK', 'the input', input, 'float32');
    if (width === undefined || k < 1 || (typeof width === 'number' && k > width))
      throw new Error(`TopK: the last axis of ${show(input.shape)} has no ${k} largest`);
    const shape = [...input.shape.slice(0, -1), k];
    return [
      { dtype: 'float32', shape },
      { dtype: 'int64', shape },
    ];
  },
  gradient: 'missing',
  lower: (to) => to.emit('TopK', [to.input(0), to.ints([Number(to.attributes.k)])], to.outputs, { axis: { int: -1 } }),
};

export function topK(a: Value, k: number): { readonly values: Value; readonly indices: Value } {
  const [values, indices] = a.graph.apply('TopK', [a], { k });
  return { values: values!, indices: indices! };
}
