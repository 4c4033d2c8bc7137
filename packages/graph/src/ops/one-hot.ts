/** OneHot: float rows with a 1 at each id, [..., depth]; no gradient. */
import type { Value } from '../graph.js';
import { show } from '../shape.js';
import { at, type OpDefinition, requireDtype } from './definition.js';

export const OneHot: OpDefinition = {
  infer: (inputs, attributes) => {
    requireDtype('OneHot', 'the ids', at(inputs, 0), 'int64');
    const { shape } = at(inputs, 0);
    if (shape.length === 0) throw new Error(`OneHot: ids need one axis at least, got ${show(shape)}`);
    return [{ dtype: 'float32', shape: [...shape, Number(attributes.depth)] }];
  },
  gradient: 'none',
  lower: (to) =>
    to.emit('OneHot', [to.input(0), to.ints([Number(to.attributes.depth)]), to.floats([0, 1])], to.outputs, {
      axis: { int: -1 },
    }),
};

export function oneHot(ids: Value, depth: number): Value {
  return ids.graph.apply('OneHot', [ids], { depth })[0]!;
}
