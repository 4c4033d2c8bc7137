/** Common subexpressions: the same operation on the same inputs is done once. Dead nodes fall away as programs are rebuilt from their outputs. */
import type { Value } from '../graph.js';
import type { Program } from '../program.js';
import { rebuild } from './rebuild.js';

export function shareSubexpressions(old: Program): Program {
  const made = new Map<string, readonly Value[]>();
  return rebuild(old, (node, inputs, { graph }) => {
    const attributes = Object.entries(node.attributes).sort(([a], [b]) => (a < b ? -1 : 1));
    const key = `${node.op} ${JSON.stringify(attributes)} ${inputs.map((input) => input.id).join(',')}`;
    let outputs = made.get(key);
    if (outputs === undefined) {
      outputs = graph.apply(node.op, inputs, node.attributes);
      made.set(key, outputs);
    }
    return outputs;
  });
}
