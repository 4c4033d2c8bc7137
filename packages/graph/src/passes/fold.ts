/** Constant folding: arithmetic of scalars, and steps that change nothing (x·1, x+0, x−0, x/1, StopGradient once differentiated). */
import { type Graph, scalarOf, type Value } from '../graph.js';
import type { OpName } from '../ops/registry.js';
import type { Program } from '../program.js';
import { sameShape } from '../shape.js';
import { rebuild } from './rebuild.js';

const arithmetic: Partial<Record<OpName, (a: number, b: number) => number>> = {
  Add: (a, b) => a + b,
  Sub: (a, b) => a - b,
  Mul: (a, b) => a * b,
  Div: (a, b) => a / b,
  Min: Math.min,
  Max: Math.max,
};

const neutralRight: Partial<Record<OpName, number>> = { Add: 0, Sub: 0, Mul: 1, Div: 1 };
const neutralLeft: Partial<Record<OpName, number>> = { Add: 0, Mul: 1 };

function folded(op: OpName, [a, b]: readonly Value[], graph: Graph, shape: readonly unknown[]): Value | undefined {
  if (a === undefined || b === undefined) return undefined;
  const [x, y] = [scalarOf(a), scalarOf(b)];
  const compute = arithmetic[op];
  if (compute !== undefined && x !== undefined && y !== undefined) return graph.scalar(Math.fround(compute(x, y)));
  if (y !== undefined && y === neutralRight[op] && a.shape.length === shape.length) return a;
  if (x !== undefined && x === neutralLeft[op] && b.shape.length === shape.length) return b;
  return undefined;
}

export function foldConstants(old: Program): Program {
  return rebuild(old, (node, inputs, { graph }) => {
    if (node.op === 'StopGradient') return inputs;
    const output = folded(node.op, inputs, graph, node.outputs[0]!.shape);
    return output !== undefined && sameShape(output.shape, node.outputs[0]!.shape) ? [output] : undefined;
  });
}
