/** Cast: another dtype. The gradient flows only between floats, of which there is one, so none flows. */
import type { DType, Value } from '../graph.js';
import { onnxDType } from '../onnx/dtype.js';
import { at, type OpDefinition } from './definition.js';

/** Nothing is rounded to int8 inside a program: weights come so. */
type CastType = Exclude<DType, 'int8'>;

export const Cast: OpDefinition = {
  infer: (inputs, attributes) => [{ dtype: attributes.to as CastType, shape: at(inputs, 0).shape }],
  gradient: 'none',
  lower: (to) => to.emit('Cast', to.inputs, to.outputs, { to: { int: onnxDType[to.attributes.to as DType] } }),
};

export function cast(a: Value, to: CastType): Value {
  return a.graph.apply('Cast', [a], { to })[0]!;
}
