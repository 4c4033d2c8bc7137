/** Elementwise operations: one factory for binary and one for unary ones. Shapes broadcast by NumPy's rule. */
import type { ValueType } from '../graph.js';
import { broadcast } from '../shape.js';
import { at, type Gradient, type OpDefinition } from './definition.js';

export function binary(name: string, gradient: Gradient): OpDefinition {
  return {
    infer: (inputs) => {
      const [a, b] = [at(inputs, 0), at(inputs, 1)];
      if (a.dtype !== b.dtype) throw new Error(`${name}: dtypes differ: ${a.dtype} and ${b.dtype}`);
      return [{ dtype: a.dtype, shape: broadcast(name, a.shape, b.shape) }];
    },
    gradient,
    lower: (to) => to.emit(name, to.inputs, to.outputs),
  };
}

export function unary(name: string, gradient: Gradient): OpDefinition {
  return {
    infer: (inputs) => [{ dtype: at(inputs, 0).dtype, shape: at(inputs, 0).shape }],
    gradient,
    lower: (to) => to.emit(name, to.inputs, to.outputs),
  };
}

export function comparison(name: string): OpDefinition {
  return {
    infer: (inputs): readonly ValueType[] => [
      { dtype: 'bool', shape: broadcast(name, at(inputs, 0).shape, at(inputs, 1).shape) },
    ],
    gradient: 'none',
    lower: (to) => to.emit(name, to.inputs, to.outputs),
  };
}
