/** The way from a graph to a model that the runtime loads: passes, then lowering. */
import type { Graph, Value } from './graph.js';
import { type LoweredProgram, lower } from './onnx/lowering.js';
import { foldConstants } from './passes/fold.js';
import { fuseKernels } from './passes/fuse.js';
import { shareSubexpressions } from './passes/share.js';
import { type Program, program } from './program.js';

/** Applies every pass; the result computes the same numbers up to rounding. */
export function optimize(original: Program): Program {
  return shareSubexpressions(fuseKernels(shareSubexpressions(foldConstants(original))));
}

/** Compiles the named outputs of a graph to the bytes of an ONNX model. */
export function compile(graph: Graph, outputs: Readonly<Record<string, Value>>): LoweredProgram {
  return lower(optimize(program(graph, outputs)));
}
