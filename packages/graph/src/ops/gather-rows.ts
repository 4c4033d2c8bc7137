/** GatherRows: out[n] = a[n, ids[n, 0]] of a [N, M, K] by int64 ids [N, 1] → [N, K]; no gradient. ONNX GatherND with one batch axis. */
import type { Value } from '../graph.js';
import { at, type OpDefinition } from './definition.js';

export const GatherRows: OpDefinition = {
  infer: (inputs) => {
    const a = at(inputs, 0);
    return [{ dtype: a.dtype, shape: [a.shape[0]!, a.shape[2]!] }];
  },
  gradient: 'none',
  lower: (to) => to.emit('GatherND', to.inputs, to.outputs, { batch_dims: { int: 1 } }),
};

export function gatherRows(a: Value, ids: Value): Value {
  return a.graph.apply('GatherRows', [a, ids])[0]!;
}
