import { describe, expect, it } from 'vitest';
import { compile, optimize } from '../compile.js';
import { Graph } from '../graph.js';
import { program } from '../program.js';
import { countOps } from '../testing/count-ops.js';
import { floats, ids, itComputes } from '../testing/op-cases.js';
import { runOnnx } from '../testing/run-onnx.js';
import { add } from './add.js';
import { exp } from './exp.js';
import { waitFor } from './wait-for.js';

describe('WaitFor', () => {
  itComputes('is the value itself, whatever the shapes of the others', () => ({
    inputs: { a: floats(['B', 2]), n: floats([]), i: ids([3], 5), b: floats(['S']), c: ids(['B', 'S'], 3) },
    outputs: ({ a, n, i, b, c }) => ({
      alone: waitFor(a!, [exp(b!)]),
      both: waitFor(a!, [b!, c!]),
      number: waitFor(n!, [exp(a!)]),
      ids: waitFor(i!, [b!]),
    }),
    wrt: ['a', 'n'],
  }));

  it('is the value alone where there is nothing to wait for', () => {
    const graph = new Graph();
    const a = graph.input('a', 'float32', ['B']);
    expect(waitFor(a, [])).toBe(a);
    expect(waitFor(a, [a])).toBe(a);
  });

  it('keeps equal work apart that is to be done at another time', () => {
    const graph = new Graph();
    const [a, b] = [graph.input('a', 'float32', ['B']), graph.input('b', 'float32', ['B'])];
    const y = add(exp(a), exp(waitFor(a, [exp(b)])));
    expect(countOps(optimize(program(graph, { y })))).toMatchObject({ WaitFor: 1, Exp: 3 });
  });

  it('changes no bit: minus zero, infinity and NaN come through', async () => {
    const graph = new Graph();
    const [a, b] = [graph.input('a', 'float32', ['B']), graph.input('b', 'float32', ['S'])];
    const data = Float64Array.of(-0, Number.POSITIVE_INFINITY, Number.NaN, 1e-45);
    const results = await runOnnx(compile(graph, { y: waitFor(a, [exp(b)]) }), {
      a: { dtype: 'float32', shape: [4], data },
      b: { dtype: 'float32', shape: [1], data: Float64Array.of(Number.NaN) },
    });
    [...results.y!.data].forEach((value, i) => {
      expect(Object.is(value, Math.fround(data[i]!))).toBe(true);
    });
  });
});
