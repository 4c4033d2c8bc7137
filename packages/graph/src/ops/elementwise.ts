/** Elementwise operations: one factory for binary and one for unary ones. Shapes broadcast by NumPy's rule. */
import type { ValueType } from '../graph.js';
import { broadcast, show } from '../shape.js';
import { at, type Gradient, type OpDefinition, requireDtype } from './definition.js';

/** Throws unless both operands have one dtype. */
export function requireSameDtype(op: string, a: ValueType, b: ValueType): void {
  if (a.dtype !== b.dtype)
    throw new Error(`${op}: dtypes differ: ${a.dtype} ${show(a.shape)} and ${b.dtype} ${show(b.shape)}`);
}

export function binary(name: string, gradient: Gradient): OpDefinition {
  return {
    infer: (inputs) => {
      const [a, b] = [at(inputs, 0), at(inputs, 1)];
      requireSameDtype(name, a, b);
      return [{ dtype: a.dtype, shape: broadcast(name, a.shape, b.shape) }];
    },
    gradient,
    lower: (to) => to.emit(name, to.inputs, to.outputs),
  };
}

export function unary(name: string, gradient: Gradient): OpDefinition {
  return {
    infer: (inputs) => {
      requireDtype(name, 'the input', at(inputs, 0), 'float32');
      return [{ dtype: 'float32', shape: at(inputs, 0).shape }];
    },
    gradient,
    lower: (to) => to.emit(name, to.inputs, to.outputs),
  };
}

export function comparison(name: string): OpDefinition {
  return {
    infer: (inputs) => {
      const [a, b] = [at(inputs, 0), at(inputs, 1)];
      requireSameDtype(name, a, b);
      return [{ dtype: 'bool', shape: broadcast(name, a.shape, b.shape) }];
    },
    gradient: 'none',
    lower: (to) => to.emit(name, to.inputs, to.outputs),
  };
}
