/**
 * A two-layer toy transformer, differentiated through everything that a real one needs.
 * B batch, S tokens, D width, H query heads, K key/value heads, G = H/K, d head width, V vocabulary.
 */
import { describe, expect, it } from 'vitest';
import { compile, optimize } from './compile.js';
import { gradients } from './gradients.js';
import { Graph, type Value } from './graph.js';
import { add } from './ops/add.js';
import { gather } from './ops/gather.js';
import { linearLogprob } from './ops/linear-logprob.js';
import { matMul } from './ops/mat-mul.js';
import { mul } from './ops/mul.js';
import { neg } from './ops/neg.js';
import { reduceSum } from './ops/reduce-sum.js';
import { reshape } from './ops/reshape.js';
import { rmsNorm } from './ops/rms-norm.js';
import { type RotaryTables, rotaryEmbedding } from './ops/rotary-embedding.js';
import { sigmoid } from './ops/sigmoid.js';
import { softmax } from './ops/softmax.js';
import { transpose } from './ops/transpose.js';
import { program } from './program.js';
import { countOps } from './testing/count-ops.js';
import { expectClose, tolerance } from './testing/expect-close.js';
import { interpret } from './testing/interpreter.js';
import { seededRandom } from './testing/random.js';
import { runOnnx } from './testing/run-onnx.js';
import { build, type Tensor } from './testing/tensor.js';

const [D, H, K, d, F, V, P, layers] = [8, 4, 2, 2, 6, 7, 5, 2];
const G = H / K;

function makeModel() {
  const graph = new Graph();
  const shapes: Record<string, readonly number[]> = {};
  const weight = (name: string, shape: readonly number[]): Value => {
    shapes[name] = shape;
    return graph.input(name, 'float32', shape);
  };
  const ids = graph.input('ids', 'int64', ['B', 'S']);
  const targets = graph.input('targets', 'int64', ['B*S', 1]);
  const rotary: RotaryTables = {
    positions: graph.input('positions', 'int64', ['B', 'S']),
    cos: graph.input('cos', 'float32', [P, d / 2]),
    sin: graph.input('sin', 'float32', [P, d / 2]),
  };
  const mask = graph.input('mask', 'float32', ['S', 'S']);
  const linear = (x: Value, name: string, out: number, inner: number) =>
    matMul(x, weight(name, [out, inner]), { transposeB: true });
  const heads = (x: Value, groups: number) => transpose(reshape(x, ['B', 'S', K, groups, d]), [0, 2, 3, 1, 4]);

  let x = gather(weight('embedding', [V, D]), ids);
  for (let layer = 0; layer < layers; layer++) {
    const at = (part: string) => `${layer}.${part}`;
    const normed = rmsNorm(x, weight(at('norm1'), [D]), 1e-5);
    const q = heads(rotaryEmbedding(linear(normed, at('q'), H * d, D), H, rotary), G);
    const k = heads(rotaryEmbedding(linear(normed, at('k'), K * d, D), K, rotary), 1);
    const v = heads(linear(normed, at('v'), K * d, D), 1);
    const scores = mul(matMul(q, transpose(k, [0, 1, 2, 4, 3])), graph.scalar(1 / Math.sqrt(d)));
    const mixed = matMul(softmax(add(scores, mask)), v);
    const joined = reshape(transpose(mixed, [0, 3, 1, 2, 4]), ['B', 'S', H * d]);
    x = add(x, linear(joined, at('o'), D, H * d));
    const after = rmsNorm(x, weight(at('norm2'), [D]), 1e-5);
    const gate = linear(after, at('gate'), F, D);
    x = add(x, linear(mul(mul(gate, sigmoid(gate)), linear(after, at('up'), F, D)), at('down'), D, F));
  }
  const hidden = reshape(rmsNorm(x, weight('norm', [D]), 1e-5), ['B*S', D]);
  const head = graph.input('head', 'float32', [V, D]);
  const loss = neg(reduceSum(linearLogprob(hidden, head, targets), [0, 1]));
  return { graph, loss, shapes };
}

function makeFeeds(shapes: Readonly<Record<string, readonly number[]>>, [B, S]: readonly [number, number]) {
  const random = seededRandom(3);
  const normal = (shape: readonly number[]) => build('float32', shape, () => Math.fround(random.uniform() * 2 - 1));
  const feeds: Record<string, Tensor> = {
    ids: build('int64', [B, S], () => random.int(0, V - 1)),
    targets: build('int64', [B * S, 1], () => random.int(0, V - 1)),
    positions: build('int64', [B, S], ([, s]) => s!),
    cos: build('float32', [P, d / 2], ([p, i]) => Math.fround(Math.cos(p! / 10 ** i!))),
    sin: build('float32', [P, d / 2], ([p, i]) => Math.fround(Math.sin(p! / 10 ** i!))),
    mask: build('float32', [S, S], ([i, j]) => (j! > i! ? Number.NEGATIVE_INFINITY : 0)),
    head: normal([V, D]),
  };
  for (const [name, shape] of Object.entries(shapes)) feeds[name] = normal(shape);
  return feeds;
}

describe('a two-layer transformer', () => {
  const { graph, loss, shapes } = makeModel();
  const names = Object.keys(shapes);
  const weights = graph.inputs.filter(({ source }) => source.type === 'input' && names.includes(source.name));
  const grads = gradients([{ value: loss, grad: graph.scalar(1) }], weights);
  const outputs = { loss, ...Object.fromEntries(names.map((name, i) => [`d ${name}`, grads[i]!])) };
  const forward = program(graph, { loss });
  const feeds = makeFeeds(shapes, [2, 3]);
  const reference = interpret(program(graph, outputs), feeds);

  it('has gradients by every weight that agree with central differences along random directions', () => {
    const random = seededRandom(4);
    const step = 1e-5;
    for (const name of names) {
      const weight = feeds[name]!;
      for (let round = 0; round < 3; round++) {
        const direction = weight.data.map(() => random.uniform() * 2 - 1);
        const lossAt = (by: number): number => {
          const moved = { ...weight, data: weight.data.map((x, i) => x + by * direction[i]!) };
          return interpret(forward, { ...feeds, [name]: moved }).loss!.data[0]!;
        };
        const numeric = (lossAt(step) - lossAt(-step)) / (2 * step);
        const analytic = reference[`d ${name}`]!.data.reduce((total, g, i) => total + g * direction[i]!, 0);
        expect(Math.abs(analytic - numeric) / Math.max(1, Math.abs(numeric)), name).toBeLessThan(
          tolerance.finiteDifference,
        );
      }
    }
  });

  it('gives the same loss and gradients when compiled and run, at other sizes too', async () => {
    const model = compile(graph, outputs);
    for (const sizes of [
      [2, 3],
      [1, 5],
      [3, 1],
    ] as const) {
      const fed = makeFeeds(shapes, sizes);
      const expected = interpret(program(graph, outputs), fed);
      const results = await runOnnx(model, fed);
      for (const name of Object.keys(outputs))
        expectClose(results[name], expected[name], { within: tolerance.float32Chain, what: name, byLargest: true });
    }
  });

  it('gives the same bits at every run', async () => {
    const model = compile(graph, outputs);
    expect(await runOnnx(model, feeds)).toEqual(await runOnnx(model, feeds));
  });

  it('runs in fused kernels where it is not differentiated', () => {
    const counts = countOps(optimize(forward));
    // Left over: the transpositions of heads, 4 a layer without that of the keys; no Mul by the scale, no Sigmoid.
    expect(counts).toMatchObject({ QuickGelu: layers, MatMul: 9 * layers, Mul: layers, Transpose: 4 * layers });
    expect(counts.Sigmoid).toBeUndefined();
  });
});
