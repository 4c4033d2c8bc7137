/** Concat along one axis. The gradient is cut into the parts again. */
import type { Value } from '../graph.js';
import { type Dim, dim, show } from '../shape.js';
import { at, type OpDefinition, onlyGrad } from './definition.js';
import { requireSameDtype } from './elementwise.js';
import { slice } from './slice.js';

/** Size of an axis made of parts; a sum with a named part is one opaque name. */
export function joinedSize(dims: readonly Dim[]): Dim {
  let total = 0;
  const names: Dim[] = [];
  for (const d of dims) {
    if (typeof d === 'number') total += d;
    else names.push(d);
  }
  if (names.length === 0) return total;
  return [...names, ...(total === 0 ? [] : [total])].join('+').replaceAll('*', '·');
}

export const Concat: OpDefinition = {
  infer: (inputs, attributes) => {
    const first = at(inputs, 0);
    const axis = Number(attributes.axis);
    for (const input of inputs) {
      requireSameDtype('Concat', first, input);
      const { shape } = input;
      if (shape.length !== first.shape.length || shape.some((d, i) => i !== axis && d !== first.shape[i])) {
        throw new Error(
          `Concat on axis ${axis}: ${inputs.map((input) => show(input.shape)).join(', ')} differ elsewhere`,
        );
      }
    }
    const joined = joinedSize(inputs.map(({ shape }) => dim(shape, axis)));
    return [{ dtype: first.dtype, shape: first.shape.map((d, i) => (i === axis ? joined : d)) }];
  },
  gradient: ({ inputs, attributes, grads, needs }) => {
    const axis = Number(attributes.axis);
    const sizes = inputs.map((input) => dim(input.shape, axis));
    const grad = onlyGrad(grads);
    // Parts of named sizes are cut by Split, which reads the sizes when it runs.
    if (sizes.some((size) => typeof size !== 'number'))
      return grad.graph.apply('Split', [grad], { axis, sizes: sizes.join(',') });
    let start = 0;
    return inputs.map((_, i) => {
      const size = Number(sizes[i]);
      const part = needs[i] ? slice(grad, axis, start, start + size) : undefined;
      start += size;
      return part;
    });
  },
  lower: (to) => to.emit('Concat', to.inputs, to.outputs, { axis: { int: Number(to.attributes.axis) } }),
};

export function concat(parts: readonly Value[], axis: number): Value {
  const first = at(parts, 0);
  return parts.length === 1
    ? first
    : first.graph.apply('Concat', parts, { axis: axis < 0 ? axis + first.shape.length : axis })[0]!;
}
