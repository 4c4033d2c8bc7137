import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { compile } from '../compile.js';
import { Graph } from '../graph.js';
import { add } from '../ops/add.js';
import { concat } from '../ops/concat.js';
import { exp } from '../ops/exp.js';
import { expandLike } from '../ops/expand-like.js';
import { gather } from '../ops/gather.js';
import { matMul } from '../ops/mat-mul.js';
import { mul } from '../ops/mul.js';
import { reshape } from '../ops/reshape.js';
import { program } from '../program.js';
import { expectClose, tolerance } from '../testing/expect-close.js';
import { interpret } from '../testing/interpreter.js';
import { runOnnx } from '../testing/run-onnx.js';
import { build, type Tensor } from '../testing/tensor.js';
import { lower } from './lowering.js';

const counting = (shape: readonly number[]): Tensor => {
  let next = 0;
  return build('float32', shape, () => next++ / 4);
};

describe('lowering', () => {
  it('runs one model at every size of its named axes', async () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', ['B', 'S', 4]);
    const outputs = { rows: reshape(x, ['B*S', 4]), columns: reshape(x, ['S*4', 'B']) };
    const model = compile(graph, outputs);
    for (const [b, s] of [
      [1, 1],
      [2, 3],
      [5, 2],
    ] as const) {
      const feeds = { x: counting([b, s, 4]) };
      const [results, expected] = [await runOnnx(model, feeds), interpret(program(graph, outputs), feeds)];
      for (const name of ['rows', 'columns'])
        expectClose(results[name], expected[name], { within: tolerance.float32, what: name });
    }
  });

  it('reads weights from a file beside the model', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'loopwright-graph-'));
    try {
      writeFileSync(join(folder, 'weights.bin'), Float32Array.of(9, 9, 1, 2, 3, 4, 5, 6));
      const graph = new Graph();
      const x = graph.input('x', 'float32', ['N', 2]);
      const weight = graph.externalConstant('weight', { shape: [3, 2], file: 'weights.bin', offset: 8 });
      const outputs = { y: matMul(x, weight, { transposeB: true }) };
      writeFileSync(join(folder, 'model.onnx'), compile(graph, outputs).bytes);
      const results = await runOnnx(join(folder, 'model.onnx'), {
        x: { dtype: 'float32', shape: [1, 2], data: Float64Array.of(1, 10) },
      });
      expect([...results.y!.data]).toEqual([21, 43, 65]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('holds arrays of numbers and ids', async () => {
    const graph = new Graph();
    const table = graph.constant(Float32Array.of(1, 2, 3, 4), [2, 2]);
    const ids = graph.constant(BigInt64Array.of(1n, 0n, 1n), [3]);
    const { y } = await runOnnx(compile(graph, { y: gather(table, ids) }), {});
    expect([...y!.data]).toEqual([3, 4, 1, 2, 3, 4]);
  });

  it('keeps clear of names that inputs and outputs have', async () => {
    const graph = new Graph();
    const [x, y] = [graph.input('t1', 'float32', [2]), graph.input('t0', 'float32', [2])];
    const feeds = { t1: counting([2]), t0: counting([2]) };
    const results = await runOnnx(compile(graph, { t2: exp(add(mul(x, y), y)) }), feeds);
    expectClose(results.t2, interpret(program(graph, { t2: exp(add(mul(x, y), y)) }), feeds).t2, {
      within: tolerance.float32,
      what: 't2',
    });
    expect(() => compile(graph, { t1: exp(x) })).toThrow(/t1 has the name of an input/);
  });

  it('returns an input, a constant, or one value under two names', async () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', ['B']);
    const y = exp(x);
    const results = await runOnnx(compile(graph, { same: x, one: graph.scalar(1), y, again: y }), { x: counting([2]) });
    expect([...results.same!.data]).toEqual([0, 0.25]);
    expect([...results.one!.data]).toEqual([1]);
    expect(results.again).toEqual(results.y);
  });

  it('emits nothing for a value of which only the shape is read', () => {
    const graph = new Graph();
    const [x, n] = [graph.input('x', 'float32', ['B', 3]), graph.input('n', 'float32', [])];
    const model = lower(program(graph, { y: expandLike(n, exp(x)) }));
    expect(Buffer.from(model.bytes).includes('Exp_')).toBe(false);
  });

  it('names the size that no input tells', () => {
    const graph = new Graph();
    const [x, y] = [graph.input('x', 'float32', ['B']), graph.input('y', 'float32', ['T'])];
    const joined = concat([x, y, x], 0);
    expect(() => compile(graph, { z: reshape(joined, [1, 1, String(joined.shape[0]), 1]) })).not.toThrow();
    const flat = graph.input('flat', 'float32', ['P*Q']);
    expect(() => compile(graph, { z: reshape(flat, ['P', 'Q']) })).toThrow(/no input has an axis of size P/);
  });

  it('writes the same bytes for the same program', () => {
    const make = () => {
      const graph = new Graph();
      const x = graph.input('x', 'float32', ['B', 4]);
      return compile(graph, { y: matMul(exp(x), x, { transposeA: true }) }).bytes;
    };
    expect(Buffer.from(make()).equals(Buffer.from(make()))).toBe(true);
  });
});
