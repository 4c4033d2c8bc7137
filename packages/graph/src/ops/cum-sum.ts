/** CumSum along one axis, each place included; used to draw from a distribution. Its gradient is not written. */
import type { Value } from '../graph.js';
import { show } from '../shape.js';
import { at, type OpDefinition, requireDtype } from './definition.js';

export const CumSum: OpDefinition = {
  infer: (inputs, attributes) => {
    const { dtype, shape } = at(inputs, 0);
    requireDtype('CumSum', 'the input', at(inputs, 0), 'float32');
    if (shape[Number(attributes.axis)] === undefined)
      throw new Error(`CumSum: ${show(shape)} has no axis ${attributes.axis}`);
    return [{ dtype, shape }];
  },
  gradient: 'missing',
  lower: (to) => to.emit('CumSum', [to.input(0), to.intScalar(Number(to.attributes.axis))], to.outputs),
};

export function cumSum(a: Value, axis: number): Value {
  return a.graph.apply('CumSum', [a], { axis: axis < 0 ? axis + a.shape.length : axis })[0]!;
}
