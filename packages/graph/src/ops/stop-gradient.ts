/** StopGradient: the value itself, taken as a constant by differentiation. */
import type { Value } from '../graph.js';
import { at, type OpDefinition } from './definition.js';

export const StopGradient: OpDefinition = {
  infer: (inputs) => [{ dtype: at(inputs, 0).dtype, shape: at(inputs, 0).shape }],
  gradient: 'none',
  lower: (to) => to.emit('Identity', to.inputs, to.outputs),
};

export function stopGradient(a: Value): Value {
  return a.graph.apply('StopGradient', [a])[0]!;
}
