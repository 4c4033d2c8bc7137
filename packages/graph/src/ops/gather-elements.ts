/** GatherElements on the last axis of [N, V] by ids [N, K]: out[n,k] = a[n, ids[n,k]]. The gradient lands at the chosen places and adds up where they repeat. */
import type { Value } from '../graph.js';
import { dim, show, staticDim } from '../shape.js';
import { at, type OpDefinition, onlyGrad, requireDtype } from './definition.js';
import { mul } from './mul.js';
import { oneHot } from './one-hot.js';
import { reduceSum } from './reduce-sum.js';
import { reshape } from './reshape.js';

export const GatherElements: OpDefinition = {
  infer: (inputs) => {
    const [a, ids] = [at(inputs, 0), at(inputs, 1)];
    requireDtype('GatherElements', 'ids', ids, 'int64');
    if (a.shape.length !== 2 || ids.shape.length !== 2 || a.shape[0] !== ids.shape[0]) {
      throw new Error(`GatherElements: needs [N,V] and [N,K], got ${show(a.shape)} and ${show(ids.shape)}`);
    }
    return [{ dtype: a.dtype, shape: ids.shape }];
  },
  gradient: ({ inputs, grads }) => {
    const [a, ids] = [at(inputs, 0), at(inputs, 1)];
    const places = oneHot(ids, staticDim(a.shape, 1));
    const grad = reshape(onlyGrad(grads), [dim(ids.shape, 0), dim(ids.shape, 1), 1]);
    return [reduceSum(mul(places, grad), [1]), undefined];
  },
  lower: (to) => to.emit('GatherElements', to.inputs, to.outputs, { axis: { int: 1 } }),
};

export function gatherElements(a: Value, ids: Value): Value {
  return a.graph.apply('GatherElements', [a, ids])[0]!;
}
