/**
 * Fusions into kernels that the runtime has: x·σ(x) becomes QuickGelu, a transposition of the last two axes and a scalar factor
 * become part of FusedMatMul. A value that something else reads as well is left alone.
 */
import { type Node, scalarOf, type Value } from '../graph.js';
import type { Program } from '../program.js';
import { type RebuildContext, rebuild } from './rebuild.js';

const producer = (value: Value): Node | undefined => (value.source.type === 'node' ? value.source.node : undefined);

/** Swaps the last two axes and nothing else. */
function isSwap(node: Node): boolean {
  if (node.op !== 'Transpose') return false;
  const axes = node.attributes.axes as readonly number[]; // true: the builder of Transpose sets it
  const last = axes.length - 1;
  return axes.every((axis, i) => axis === (i === last ? last - 1 : i === last - 1 ? last : i));
}

/** What lies under any number of swaps, and whether it is to be swapped once more in all. */
function unswapped(value: Value, swapped: boolean): { readonly value: Value; readonly swapped: boolean } {
  const node = producer(value);
  return node !== undefined && isSwap(node) ? unswapped(node.inputs[0]!, !swapped) : { value, swapped };
}

function fuseSilu(node: Node, inputs: readonly Value[], { graph, uses }: RebuildContext): readonly Value[] | undefined {
  for (const [i, j] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const gate = producer(node.inputs[i]!);
    const x = node.inputs[j]!;
    if (gate?.op === 'Sigmoid' && gate.inputs[0] === x && uses(node.inputs[i]!) === 1)
      return graph.apply('QuickGelu', [inputs[j]!], { alpha: 1 });
  }
  return undefined;
}

function fuseScale(
  node: Node,
  inputs: readonly Value[],
  { graph, uses }: RebuildContext,
): readonly Value[] | undefined {
  for (const [i, j] of [
    [0, 1],
    [1, 0],
  ] as const) {
    const product = producer(inputs[i]!);
    const factor = scalarOf(inputs[j]!);
    if (product?.op !== 'MatMul' || factor === undefined || uses(node.inputs[i]!) !== 1) continue;
    return graph.apply('MatMul', product.inputs, {
      ...product.attributes,
      alpha: factor * Number(product.attributes.alpha ?? 1),
    });
  }
  return undefined;
}

function fuseTransposes(node: Node, inputs: readonly Value[], { graph }: RebuildContext): readonly Value[] | undefined {
  const { transposeA = false, transposeB = false, ...rest } = node.attributes;
  const [a, b] = [unswapped(inputs[0]!, transposeA === true), unswapped(inputs[1]!, transposeB === true)];
  if (a.value === inputs[0] && b.value === inputs[1]) return undefined;
  return graph.apply('MatMul', [a.value, b.value], { ...rest, transposeA: a.swapped, transposeB: b.swapped });
}

export function fuseKernels(old: Program): Program {
  return rebuild(old, (node, inputs, context) => {
    if (node.op === 'Mul') return fuseSilu(node, inputs, context) ?? fuseScale(node, inputs, context);
    if (node.op === 'MatMul') return fuseTransposes(node, inputs, context);
    return undefined;
  });
}
