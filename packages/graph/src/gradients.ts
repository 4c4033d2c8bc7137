/** Reverse-mode differentiation: adds the nodes of the backward pass to the graph (Griewank & Walther, Evaluating Derivatives, ch. 3). */
import type { Node, Value } from './graph.js';
import { add } from './ops/add.js';
import { reduceSum } from './ops/reduce-sum.js';
import { opTable } from './ops/registry.js';
import { reshape } from './ops/reshape.js';
import { type Shape, sameShape, show } from './shape.js';

/** An output of the function, with the gradient of the loss by it. */
export interface Seed {
  readonly value: Value;
  /** Same shape as `value`; for a loss of shape [] the number 1. */
  readonly grad: Value;
}

/** Sums a gradient down to the shape that was broadcast. */
function unbroadcast(grad: Value, shape: Shape): Value {
  if (sameShape(grad.shape, shape)) return grad;
  const lead = grad.shape.length - shape.length;
  const axes = grad.shape.flatMap((d, i) => (i < lead || (shape[i - lead] === 1 && d !== 1) ? [i] : []));
  return reshape(axes.length === 0 ? grad : reduceSum(grad, axes), shape);
}

/**
 * Gradients of Σ ⟨seed.grad, seed.value⟩ by each value of `wrt`, in the same shapes.
 *
 * @throws when the seeds do not depend on one of them, a gradient of another shape is given, or an operation on the way has a gradient
 *   that is not written
 */
export function gradients(seeds: readonly Seed[], wrt: readonly Value[]): Value[] {
  const graph = seeds[0]?.value.graph;
  if (graph === undefined) throw new Error('gradients: needs one output at least');
  const dependent = new Set<number>(wrt.map((value) => value.id));
  const nodes: Node[] = [];
  for (const node of [...graph.nodes]) {
    if (!node.inputs.some((input) => dependent.has(input.id)) || opTable[node.op].gradient === 'none') continue;
    for (const output of node.outputs) dependent.add(output.id);
    nodes.push(node);
  }
  const grads = new Map<number, Value>();
  const accumulate = (value: Value, grad: Value) => {
    const known = grads.get(value.id);
    const summed = unbroadcast(grad, value.shape);
    grads.set(value.id, known === undefined ? summed : add(known, summed));
  };
  for (const { value, grad } of seeds) {
    if (!sameShape(value.shape, grad.shape))
      throw new Error(`gradients: a value of shape ${show(value.shape)} has a gradient of shape ${show(grad.shape)}`);
    accumulate(value, grad);
  }
  for (const node of nodes.reverse()) {
    const { gradient } = opTable[node.op];
    const outputGrads = node.outputs.map((output) => grads.get(output.id));
    if (gradient === 'none' || outputGrads.every((grad) => grad === undefined)) continue;
    if (gradient === 'missing')
      throw new Error(`${node.op}: its gradient is not written; put stopGradient before it where none is wanted`);
    const needs = node.inputs.map((input) => dependent.has(input.id));
    const { inputs, outputs, attributes } = node;
    gradient({ inputs, outputs, attributes, grads: outputGrads, needs }).forEach((grad, i) => {
      if (grad !== undefined && needs[i]) accumulate(inputs[i]!, grad);
    });
  }
  return wrt.map((value, i) => {
    const grad = grads.get(value.id);
    if (grad === undefined) throw new Error(`gradients: the outputs do not depend on value ${i} of wrt`);
    return grad;
  });
}
