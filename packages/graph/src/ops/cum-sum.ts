/** CumSum along one axis, each place included; used to draw from a distribution, no gradient. */
import type { Value } from '../graph.js';
import { at, type OpDefinition } from './definition.js';

export const CumSum: OpDefinition = {
  infer: (inputs) => [at(inputs, 0)],
  gradient: 'none',
  lower: (to) => to.emit('CumSum', [to.input(0), to.intScalar(Number(to.attributes.axis))], to.outputs),
};

export function cumSum(a: Value, axis: number): Value {
  return a.graph.apply('CumSum', [a], { axis: axis < 0 ? axis + a.shape.length : axis })[0]!;
}
