/** Reverse-mode differentiation: adds the nodes of the backward pass to the graph (Griewank & Walther, Evaluating Derivatives, ch. 3). */
import type { Graph, Node, Value } from './graph.js';
import { add } from './ops/add.js';
import { reduceSum } from './ops/reduce-sum.js';
import { opTable } from './ops/registry.js';
import { reshape } from './ops/reshape.js';
import { waitFor } from './ops/wait-for.js';
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

/** A node, or the steps of a region. */
type Step = Node | readonly Step[];

const isRegion = (step: Step): step is readonly Step[] => Array.isArray(step);

/** The nodes of a graph in order, those of each region together. */
function stepsOf({ nodes, regions }: Graph): Step[] {
  // Each region takes what has come since its start, inner ones first: they end first.
  const open: { step: Step; start: number }[] = [];
  const ending = [...regions];
  nodes.forEach((node, place) => {
    open.push({ step: node, start: place });
    while (ending[0]?.end === place + 1) {
      const { start } = ending.shift()!;
      const first = open.findIndex((item) => item.start >= start);
      open.push({ step: open.splice(first).map(({ step }) => step), start });
    }
  });
  return open.map(({ step }) => step);
}

const nodesOf = (step: Step): readonly Node[] => (isRegion(step) ? step.flatMap(nodesOf) : [step]);

/** Gradients of values as they add up, while a backward pass goes through a part of the graph. */
class Sums {
  readonly #grads = new Map<number, Value>();

  get(value: Value): Value | undefined {
    return this.#grads.get(value.id);
  }

  add(value: Value, grad: Value): void {
    const known = this.#grads.get(value.id);
    const summed = unbroadcast(grad, value.shape);
    this.#grads.set(value.id, known === undefined ? summed : add(known, summed));
  }
}

/** A region built again behind other values. */
interface Copy {
  readonly steps: readonly Step[];
  /** The value that stands for one of the first time. */
  readonly of: (value: Value) => Value;
}

class Backward {
  readonly #dependent: Set<number>;

  constructor(wrt: readonly Value[]) {
    this.#dependent = new Set(wrt.map((value) => value.id));
  }

  /** Marks what depends on the wanted values; steps in their order. */
  mark(steps: readonly Step[]): void {
    for (const node of steps.flatMap(nodesOf)) {
      if (!this.#reaches(node)) continue;
      for (const output of node.outputs) this.#dependent.add(output.id);
    }
  }

  #reaches(node: Node): boolean {
    return opTable[node.op].gradient !== 'none' && node.inputs.some((input) => this.#dependent.has(input.id));
  }

  walk(steps: readonly Step[], sums: Sums): void {
    for (const step of [...steps].reverse()) {
      if (isRegion(step)) this.#walkRegion(step, sums);
      else this.#walkNode(step, sums);
    }
  }

  #walkNode(node: Node, sums: Sums): void {
    const { gradient } = opTable[node.op];
    if (!this.#reaches(node) || gradient === 'none') return;
    const { inputs, outputs, attributes } = node;
    const grads = outputs.map((output) => sums.get(output));
    if (grads.every((grad) => grad === undefined)) return;
    if (gradient === 'missing')
      throw new Error(`${node.op}: its gradient is not written; put stopGradient before it where none is wanted`);
    const needs = inputs.map((input) => this.#dependent.has(input.id));
    gradient({ inputs, outputs, attributes, grads, needs }).forEach((grad, i) => {
      if (grad !== undefined && needs[i]) sums.add(inputs[i]!, grad);
    });
  }

  #walkRegion(region: readonly Step[], sums: Sums): void {
    const nodes = nodesOf(region);
    const reached = nodes
      .flatMap(({ outputs }) => outputs)
      .flatMap((value) => {
        const grad = sums.get(value);
        return grad === undefined ? [] : [{ value, grad }];
      });
    if (reached.length === 0) return;
    const made = new Set(nodes.flatMap(({ outputs }) => outputs.map(({ id }) => id)));
    const free = [...new Set(nodes.flatMap(({ inputs }) => inputs))].filter(({ id }) => !made.has(id));
    const copy = this.#copy(region, free, (value) =>
      waitFor(
        value,
        reached.map(({ grad }) => grad),
      ),
    );
    const inner = new Sums();
    for (const { value, grad } of reached) inner.add(copy.of(value), grad);
    this.walk(copy.steps, inner);
    const found = free.flatMap((value) => {
      const grad = this.#dependent.has(value.id) ? inner.get(copy.of(value)) : undefined;
      return grad === undefined ? [] : [{ value, grad }];
    });
    const all = found.map(({ grad }) => grad);
    for (const { value, grad } of found) sums.add(value, waitFor(grad, all));
  }

  /** Repeats the nodes of a region that read results of others, `late` ones of them. What is there anyhow is not repeated. */
  #copy(region: readonly Step[], free: readonly Value[], late: (value: Value) => Value): Copy {
    const copies = new Map<number, Value>();
    const of = (value: Value) => copies.get(value.id) ?? value;
    const put = (value: Value, copied: Value) => {
      copies.set(value.id, copied);
      if (this.#dependent.has(value.id)) this.#dependent.add(copied.id);
    };
    for (const value of free) if (value.source.type === 'node') put(value, late(value));
    const repeat = (step: Step): Step => {
      if (isRegion(step)) return step.map(repeat);
      const { op, inputs, attributes, outputs } = step;
      const moved = inputs.map(of);
      if (moved.every((value, i) => value === inputs[i])) return step;
      const results = inputs[0]!.graph.apply(op, moved, attributes);
      outputs.forEach((value, i) => {
        put(value, results[i]!);
      });
      const [{ source }] = results as readonly [Value]; // an operation has one output at least
      if (source.type !== 'node') throw new Error(`${op}: its result is not its own`);
      return source.node;
    };
    return { steps: region.map(repeat), of };
  }
}

/**
 * Gradients of Σ ⟨seed.grad, seed.value⟩ by each value of `wrt`, in the same shapes. What was built under `recompute` is built again.
 *
 * @throws when the seeds do not depend on one of them, a gradient of another shape is given, or an operation on the way has a gradient
 *   that is not written
 */
export function gradients(seeds: readonly Seed[], wrt: readonly Value[]): Value[] {
  const graph = seeds[0]?.value.graph;
  if (graph === undefined) throw new Error('gradients: needs one output at least');
  const steps = stepsOf(graph);
  const backward = new Backward(wrt);
  backward.mark(steps);
  const sums = new Sums();
  for (const { value, grad } of seeds) {
    if (!sameShape(value.shape, grad.shape))
      throw new Error(`gradients: a value of shape ${show(value.shape)} has a gradient of shape ${show(grad.shape)}`);
    sums.add(value, grad);
  }
  backward.walk(steps, sums);
  return wrt.map((value, i) => {
    const grad = sums.get(value);
    if (grad === undefined) throw new Error(`gradients: the outputs do not depend on value ${i} of wrt`);
    return grad;
  });
}
