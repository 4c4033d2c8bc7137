/**
 * LinearLogprob: log softmax(x·Wᵀ) at the target ids, without ever keeping the logits for a backward pass.
 *
 * x [N, H], W [V, H] frozen, ids [N, K] → logprobs [N, K] and, for the gradient, E = softmax(x·Wᵀ)·W [N, H]:
 * dx = Σ_k dlp_k · W[id_k] − (Σ_k dlp_k) · E. E costs one product in the forward pass and saves storing or recomputing V logits a row.
 */
import type { Value } from '../graph.js';
import { dim, show } from '../shape.js';
import { at, type OpDefinition, onlyGrad, requireDtype } from './definition.js';
import { gather } from './gather.js';
import { mul } from './mul.js';
import { reduceSum } from './reduce-sum.js';
import { reshape } from './reshape.js';
import { sub } from './sub.js';

export const LinearLogprob: OpDefinition = {
  infer: (inputs) => {
    const [x, w, ids] = [at(inputs, 0), at(inputs, 1), at(inputs, 2)];
    requireDtype('LinearLogprob', 'ids', ids, 'int64');
    if (
      x.shape.length !== 2 ||
      w.shape.length !== 2 ||
      ids.shape.length !== 2 ||
      x.shape[1] !== w.shape[1] ||
      x.shape[0] !== ids.shape[0]
    ) {
      throw new Error(
        `LinearLogprob: needs [N,H], [V,H] and ids [N,K], got ${show(x.shape)}, ${show(w.shape)}, ${show(ids.shape)}`,
      );
    }
    return [
      { dtype: 'float32', shape: ids.shape },
      { dtype: 'float32', shape: x.shape },
    ];
  },
  gradient: ({ inputs, outputs, grads, needs }) => {
    const [x, w, ids] = [at(inputs, 0), at(inputs, 1), at(inputs, 2)];
    if (needs[1])
      throw new Error('LinearLogprob: its weight is frozen; use matMul, logSoftmax and gatherElements to train it');
    const grad = onlyGrad(grads, 'LinearLogprob');
    const [n, k, h] = [dim(ids.shape, 0), dim(ids.shape, 1), dim(x.shape, 1)];
    const chosen = reduceSum(mul(gather(w, ids), reshape(grad, [n, k, 1])), [1]);
    return [
      sub(reshape(chosen, [n, h]), mul(reduceSum(grad, [1], { keepDims: true }), at(outputs, 1))),
      undefined,
      undefined,
    ];
  },
  lower: (to) => {
    const [logits, shift, shifted, exps, total, logTotal, chosen, expectedSum] = to.temps(8);
    const [x, w, ids] = [to.input(0), to.input(1), to.input(2)];
    const keep = { keepdims: { int: 1 } };
    to.emit('FusedMatMul', [x, w], [logits], { transB: { int: 1 } }, 'com.microsoft');
    to.emit('ReduceMax', [logits, to.ints([-1])], [shift], keep);
    to.emit('Sub', [logits, shift], [shifted]);
    to.emit('GatherElements', [shifted, ids], [chosen], { axis: { int: 1 } });
    to.emit('Exp', [shifted], [exps]);
    to.emit('ReduceSum', [exps, to.ints([-1])], [total], keep);
    to.emit('Log', [total], [logTotal]);
    to.emit('Sub', [chosen, logTotal], [to.output(0)]);
    if (to.uses(1)) {
      to.emit('MatMul', [exps, w], [expectedSum]);
      to.emit('Div', [expectedSum, total], [to.output(1)]);
    }
  },
};

export function linearLogprob(x: Value, weight: Value, ids: Value): Value {
  return x.graph.apply('LinearLogprob', [x, weight, ids])[0]!;
}
