/**
 * Gather: rows of a table [V, …] by ids. The gradient of the table adds up the rows of each id; it is done as a product with
 * one-hot ids, whose order of additions is fixed, so that equal inputs give equal bits (a scatter with additions may race).
 */
import type { Value } from '../graph.js';
import { dim, product, show, staticDim } from '../shape.js';
import { at, type OpDefinition, onlyGrad, requireDtype } from './definition.js';
import { matMul } from './mat-mul.js';
import { oneHot } from './one-hot.js';
import { reshape } from './reshape.js';

export const Gather: OpDefinition = {
  infer: (inputs) => {
    const [table, ids] = [at(inputs, 0), at(inputs, 1)];
    requireDtype('Gather', 'ids', ids, 'int64');
    if (table.shape.length === 0)
      throw new Error(`Gather: the table needs one axis at least, got ${show(table.shape)}`);
    return [{ dtype: table.dtype, shape: [...ids.shape, ...table.shape.slice(1)] }];
  },
  gradient: ({ inputs, grads, needs }) => {
    if (!needs[0]) return [undefined, undefined];
    const [table, ids] = [at(inputs, 0), at(inputs, 1)];
    if (table.shape.length !== 2) throw new Error('Gather: a gradient needs a table of two axes');
    const count = product(ids.shape);
    const rows = reshape(onlyGrad(grads), [count, dim(table.shape, 1)]);
    return [matMul(oneHot(reshape(ids, [count]), staticDim(table.shape, 0)), rows, { transposeA: true }), undefined];
  },
  lower: (to) => to.emit('Gather', to.inputs, to.outputs, { axis: { int: 0 } }),
};

export function gather(table: Value, ids: Value): Value {
  return table.graph.apply('Gather', [table, ids])[0]!;
}
