import { describe, expect, it } from 'vitest';
import { compile, optimize } from './compile.js';
import { gradients } from './gradients.js';
import { Graph, type Node, type Value } from './graph.js';
import { add } from './ops/add.js';
import { exp } from './ops/exp.js';
import { linearLogprob } from './ops/linear-logprob.js';
import { matMul } from './ops/mat-mul.js';
import { mul } from './ops/mul.js';
import { reduceSum } from './ops/reduce-sum.js';
import { rmsNorm } from './ops/rms-norm.js';
import { softmax } from './ops/softmax.js';
import { split } from './ops/split.js';
import { program } from './program.js';
import { recompute } from './recompute.js';
import { countOps } from './testing/count-ops.js';
import { floats, ids, itComputes } from './testing/op-cases.js';
import { seededRandom } from './testing/random.js';
import { runOnnx } from './testing/run-onnx.js';
import { build, type Tensor } from './testing/tensor.js';

type Keep = <T>(graph: Graph, build: () => T) => T;
const plain: Keep = (_, make) => make();

/** Two layers: a norm, a softmax that its own region may be in, weights. x [B, 4] → [B, 4]. */
function layers(x: Value, weights: readonly Value[], { inner, outer }: { inner: Keep; outer: Keep }): Value {
  const { graph } = x;
  return weights.reduce(
    (y, weight) =>
      outer(graph, () => {
        const normed = rmsNorm(y, reduceSum(weight, [0]), 0.1);
        const attended = inner(graph, () => matMul(softmax(matMul(normed, weight)), weight));
        return add(y, mul(attended, normed));
      }),
    x,
  );
}

const inputs = { x: floats(['B', 4]), v: floats([4, 4]), w: floats([4, 4]) };

describe('what is computed again', () => {
  for (const [title, inner, outer] of [
    ['inside', recompute, plain],
    ['around', plain, recompute],
    ['one in another', recompute, recompute],
  ] as const)
    itComputes(`has the gradients of central differences: ${title}`, () => ({
      inputs,
      outputs: ({ x, v, w }) => ({ y: layers(x!, [v!, w!], { inner, outer }) }),
      wrt: ['x', 'v', 'w'],
    }));

  itComputes('has them where several of its values go on from it', () => ({
    inputs,
    outputs: ({ x, v }) => {
      const parts = recompute(x!.graph, () => {
        const product = matMul(x!, v!);
        return [exp(product), ...split(product, 1, [1, 3])];
      });
      return { all: mul(parts[0]!, x!), some: exp(parts[2]!) };
    },
    wrt: ['x', 'v'],
  }));

  itComputes('has them for a head that never keeps its logits', () => ({
    inputs: { ...inputs, ids: ids(['B', 1], 4) },
    outputs: ({ x, v, w, ids }) => ({ y: recompute(x!.graph, () => linearLogprob(matMul(x!, w!), v!, ids!)) }),
    wrt: ['x', 'w'],
  }));

  it('gives the same bits as what is kept', async () => {
    const random = seededRandom(2);
    const draw = (shape: readonly number[]): Tensor =>
      build('float32', shape, () => Math.fround(random.uniform() - 0.5));
    const feeds = { x: draw([5, 4]), v: draw([4, 4]), w: draw([4, 4]), g: draw([5, 4]) };
    const run = (inner: Keep, outer: Keep) => {
      const graph = new Graph();
      const x = graph.input('x', 'float32', ['B', 4]);
      const [v, w, g] = [
        graph.input('v', 'float32', [4, 4]),
        graph.input('w', 'float32', [4, 4]),
        graph.input('g', 'float32', ['B', 4]),
      ];
      const y = layers(x, [v, w], { inner, outer });
      const [dx, dv, dw] = gradients([{ value: y, grad: g }], [x, v, w]);
      return runOnnx(compile(graph, { y, dx: dx!, dv: dv!, dw: dw! }), feeds);
    };
    const kept = await run(plain, plain);
    expect(await run(recompute, plain)).toEqual(kept);
    expect(await run(plain, recompute)).toEqual(kept);
    expect(await run(recompute, recompute)).toEqual(kept);
  });

  /** Whether a node reads, over any number of others, what `from` makes. */
  const readsFrom = (node: Node, from: Node): boolean =>
    node === from || node.inputs.some(({ source }) => source.type === 'node' && readsFrom(source.node, from));

  it('is made a second time, and not before its gradient is there', () => {
    const graph = new Graph();
    const [x, g] = [graph.input('x', 'float32', ['B', 4]), graph.input('g', 'float32', ['B', 4])];
    const hidden = exp(x);
    const y = recompute(graph, () => softmax(hidden));
    const late = mul(y, exp(exp(y)));
    const optimized = optimize(program(graph, { dx: gradients([{ value: late, grad: g }], [x])[0]! }));
    const softmaxes = optimized.nodes.filter(({ op }) => op === 'Softmax');
    expect(softmaxes).toHaveLength(2);
    const lastExp = optimized.nodes.filter(({ op }) => op === 'Exp').at(-1)!;
    expect(softmaxes.map((node) => readsFrom(node, lastExp))).toEqual([false, true]);
  });

  it('is done with before the backward pass goes on', () => {
    const graph = new Graph();
    const [x, g] = [graph.input('x', 'float32', ['B', 4]), graph.input('g', 'float32', ['B', 4])];
    const weight = graph.input('weight', 'float32', [4, 4]);
    const y = recompute(graph, () => softmax(matMul(exp(x), weight)));
    const [dx, dWeight] = gradients([{ value: y, grad: g }], [x, weight]);
    const nodeOf = ({ source }: Value) => {
      if (source.type !== 'node') throw new Error('not made by a node');
      return source.node;
    };
    const untied = nodeOf(nodeOf(dWeight!).inputs[0]!);
    expect(nodeOf(dx!).op).toBe('WaitFor');
    expect(readsFrom(nodeOf(dx!), untied)).toBe(true);
  });

  it('leaves out what no gradient needs, and what it shares with all layers', () => {
    const graph = new Graph();
    const [x, g] = [graph.input('x', 'float32', ['B', 4]), graph.input('g', 'float32', ['B', 4])];
    const weight = graph.input('weight', 'float32', [4, 4]);
    const y = recompute(graph, () => matMul(softmax(x), exp(weight)));
    const dx = gradients([{ value: y, grad: g }], [x])[0]!;
    expect(countOps(optimize(program(graph, { y, dx })))).toMatchObject({ Exp: 1, MatMul: 2 });
  });

  it('may be a region without a gradient, or without a node', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', ['B', 4]);
    const unused = recompute(graph, () => exp(x));
    expect(recompute(graph, () => x)).toBe(x);
    const [dx] = gradients([{ value: exp(x), grad: unused }], [x]);
    expect(countOps(program(graph, { dx: dx! }))).toEqual({ Exp: 2, Mul: 1 });
  });
});
