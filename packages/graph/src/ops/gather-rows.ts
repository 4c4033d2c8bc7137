/** GatherRows: out[n] = a[n, ids[n, 0]] of a [N, M, K] by int64 ids [N, 1] → [N, K]. Its gradient is not written. ONNX GatherND with one batch axis. */
import type { Value } from '../graph.js';
import { sameShape, show } from '../shape.js';
import { at, type OpDefinition, requireDtype } from './definition.js';

export const GatherRows: OpDefinition = {
  infer: (inputs) => {
    const [a, ids] = [at(inputs, 0), at(inputs, 1)];
    requireDtype('GatherRows', 'ids', ids, 'int64');
    const [n, , k] = a.shape;
    if (a.shape.length !== 3 || n === undefined || k === undefined || !sameShape(ids.shape, [n, 1]))
      throw new Error(`GatherRows: needs [N,M,K] and ids [N,1], got ${show(a.shape)} and ${show(ids.shape)}`);
    return [{ dtype: a.dtype, shape: [n, k] }];
  },
  gradient: 'missing',
  lower: (to) => to.emit('GatherND', to.inputs, to.outputs, { batch_dims: { int: 1 } }),
};

export function gatherRows(a: Value, ids: Value): Value {
  return a.graph.apply('GatherRows', [a, ids])[0]!;
}
