/** Copies a program into a new graph, letting a pass replace nodes on the way. */
import { Graph, type Node, type Value } from '../graph.js';
import { type Program, program } from '../program.js';

export interface RebuildContext {
  readonly graph: Graph;
  /** How many nodes and outputs read a value of the old program. */
  readonly uses: (old: Value) => number;
}

/** Returns the outputs that stand for the node's, made in the new graph; undefined copies the node. */
export type Replace = (node: Node, inputs: readonly Value[], context: RebuildContext) => readonly Value[] | undefined;

export function rebuild(old: Program, replace: Replace): Program {
  const graph = new Graph();
  const counts = new Map<number, number>();
  const count = (value: Value) => counts.set(value.id, (counts.get(value.id) ?? 0) + 1);
  for (const node of old.nodes) node.inputs.forEach(count);
  for (const { value } of old.outputs) count(value);
  const context = { graph, uses: (value: Value) => counts.get(value.id) ?? 0 };

  const mapped = new Map<number, Value>();
  const move = (value: Value): Value => {
    let found = mapped.get(value.id);
    if (found !== undefined) return found;
    const { source } = value;
    if (source.type === 'node') throw new Error(`${source.node.op}: used before it is made`);
    if (source.type === 'input') found = graph.input(source.name, value.dtype, value.shape);
    else found = copyConstant(graph, value);
    mapped.set(value.id, found);
    return found;
  };
  for (const input of old.inputs) move(input);
  for (const node of old.nodes) {
    const inputs = node.inputs.map(move);
    const outputs = replace(node, inputs, context) ?? graph.apply(node.op, inputs, node.attributes);
    node.outputs.forEach((value, i) => {
      mapped.set(value.id, outputs[i]!);
    });
  }
  return program(graph, Object.fromEntries(old.outputs.map(({ name, value }) => [name, move(value)])));
}

function copyConstant(graph: Graph, value: Value): Value {
  const shape = value.shape.map(Number);
  if (value.source.type !== 'constant') throw new Error('not a constant');
  const { constant } = value.source;
  if (constant.type === 'external')
    return graph.externalConstant(constant.name, { dtype: value.dtype, shape, ...constant.place });
  const { data } = constant;
  return data instanceof Float32Array && data.length === 1 && shape.length === 0
    ? graph.scalar(data[0]!)
    : graph.constant(data, shape);
}
