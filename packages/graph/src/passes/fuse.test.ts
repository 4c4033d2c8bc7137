import { describe, expect, it } from 'vitest';
import { Graph, type Value } from '../graph.js';
import { matMul } from '../ops/mat-mul.js';
import { mul } from '../ops/mul.js';
import { sigmoid } from '../ops/sigmoid.js';
import { transpose } from '../ops/transpose.js';
import { program } from '../program.js';
import { countOps } from '../testing/count-ops.js';
import { fuseKernels } from './fuse.js';

function matrices(): { graph: Graph; a: Value; b: Value } {
  const graph = new Graph();
  return { graph, a: graph.input('a', 'float32', ['B', 3, 4]), b: graph.input('b', 'float32', ['B', 4, 5]) };
}

describe('fusion', () => {
  it('makes one QuickGelu of x·σ(x), in either order', () => {
    const { graph, a, b } = matrices();
    const fused = fuseKernels(program(graph, { left: mul(a, sigmoid(a)), right: mul(sigmoid(b), b) }));
    expect(countOps(fused)).toEqual({ QuickGelu: 2 });
    expect(fused.nodes[0]!.attributes).toEqual({ alpha: 1 });
  });

  it('leaves a sigmoid alone that something else reads, or that belongs to another value', () => {
    const { graph, a } = matrices();
    const other = graph.input('other', 'float32', ['B', 3, 4]);
    const gate = sigmoid(a);
    expect(countOps(fuseKernels(program(graph, { y: mul(a, gate), gate })))).toEqual({ Mul: 1, Sigmoid: 1 });
    expect(countOps(fuseKernels(program(graph, { y: mul(other, sigmoid(a)) })))).toEqual({ Mul: 1, Sigmoid: 1 });
  });

  it('puts a transposition of the last two axes into the product', () => {
    const { graph, a, b } = matrices();
    const outputs = {
      sides: matMul(transpose(b, [0, 2, 1]), transpose(a, [0, 2, 1])),
      undone: matMul(transpose(a, [0, 2, 1]), b, { transposeA: true }),
    };
    const fused = fuseKernels(program(graph, outputs));
    const attributes = Object.fromEntries(
      fused.outputs.map(({ name, value }) => [name, value.source.type === 'node' ? value.source.node.attributes : {}]),
    );
    expect(attributes.sides).toEqual({ transposeA: true, transposeB: true });
    expect(attributes.undone).toEqual({ transposeA: false, transposeB: false });
    expect(countOps(fused)).toEqual({
      MatMul: 2,
    });
  });

  it('sees through two swaps in a row', () => {
    const { graph, a, b } = matrices();
    const twice = transpose(transpose(a, [0, 2, 1]), [0, 2, 1]);
    expect(countOps(fuseKernels(program(graph, { y: matMul(twice, b) })))).toEqual({ MatMul: 1 });
  });

  it('leaves other transpositions alone', () => {
    const graph = new Graph();
    const a = graph.input('a', 'float32', [2, 3, 4]);
    const moved = matMul(transpose(a, [1, 0, 2]), transpose(a, [1, 2, 0]));
    expect(countOps(fuseKernels(program(graph, { moved })))).toEqual({ MatMul: 1, Transpose: 2 });
  });

  it('puts scalar factors into the product, all of them', () => {
    const { graph, a, b } = matrices();
    const scaled = mul(graph.scalar(0.5), mul(matMul(a, b, { alpha: 3 }), graph.scalar(4)));
    const fused = fuseKernels(program(graph, { scaled }));
    expect(fused.nodes.map(({ op, attributes }) => ({ op, attributes }))).toEqual([
      { op: 'MatMul', attributes: { alpha: 6 } },
    ]);
  });

  it('leaves a product alone that something else reads', () => {
    const { graph, a, b } = matrices();
    const product = matMul(a, b);
    expect(countOps(fuseKernels(program(graph, { scaled: mul(product, graph.scalar(2)), product })))).toEqual({
      MatMul: 1,
      Mul: 1,
    });
  });

  it('leaves a factor alone that is an array or only known at run time', () => {
    const { graph, a, b } = matrices();
    const [scale, row] = [graph.input('scale', 'float32', []), graph.constant(Float32Array.of(1, 2, 3, 4, 5), [5])];
    const outputs = { y: mul(matMul(a, b), scale), z: mul(matMul(a, b, { transposeA: false }), row) };
    expect(countOps(fuseKernels(program(graph, outputs)))).toEqual({ MatMul: 2, Mul: 2 });
  });
});
