/** TopK over the last axis, largest first: values and int64 indices [.., k]; no gradient. */
import type { Value } from '../graph.js';
import { at, type OpDefinition } from './definition.js';

export const TopK: OpDefinition = {
  infer: (inputs, attributes) => {
    const shape = [...at(inputs, 0).shape.slice(0, -1), Number(attributes.k)];
    return [
      { dtype: 'float32', shape },
      { dtype: 'int64', shape },
    ];
  },
  gradient: 'none',
  lower: (to) => to.emit('TopK', [to.input(0), to.ints([Number(to.attributes.k)])], to.outputs, { axis: { int: -1 } }),
};

export function topK(a: Value, k: number): { readonly values: Value; readonly indices: Value } {
  const [values, indices] = a.graph.apply('TopK', [a], { k });
  return { values: values!, indices: indices! };
}
