/** A program: the part of a graph that some named outputs need, in an order in which it can run. */
import type { Graph, Node, Value } from './graph.js';

export interface ProgramOutput {
  readonly name: string;
  readonly value: Value;
}

export interface Program {
  /** All inputs of the graph, used or not, in the order of their creation. */
  readonly inputs: readonly Value[];
  readonly nodes: readonly Node[];
  readonly outputs: readonly ProgramOutput[];
}

/** Takes the nodes that the outputs depend on, in creation order (which is a topological order). */
export function program(graph: Graph, outputs: Readonly<Record<string, Value>>): Program {
  const list = Object.entries(outputs).map(([name, value]) => ({ name, value }));
  const needed = new Set<Node>();
  const stack = list.map(({ value }) => value);
  for (let value = stack.pop(); value !== undefined; value = stack.pop()) {
    if (value.graph !== graph) throw new Error('an output belongs to another graph');
    if (value.source.type !== 'node' || needed.has(value.source.node)) continue;
    needed.add(value.source.node);
    stack.push(...value.source.node.inputs);
  }
  return { inputs: graph.inputs, nodes: graph.nodes.filter((node) => needed.has(node)), outputs: list };
}
