import { describe, expect, it } from 'vitest';
import { gradients } from './gradients.js';
import { Graph } from './graph.js';
import { add } from './ops/add.js';
import { exp } from './ops/exp.js';
import { lessOrEqual } from './ops/less-or-equal.js';
import { mul } from './ops/mul.js';
import { reduceSum } from './ops/reduce-sum.js';
import { where } from './ops/where.js';
import { program } from './program.js';
import { interpret } from './testing/interpreter.js';

const number = (value: number) => ({ dtype: 'float32', shape: [], data: Float64Array.of(value) }) as const;

describe('gradients', () => {
  it('adds up over all uses of a value and all seeds', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', []);
    const square = mul(x, x);
    const seeds = [
      { value: mul(square, x), grad: graph.scalar(1) },
      { value: square, grad: graph.scalar(10) },
    ];
    const [grad] = gradients(seeds, [x]);
    expect([...interpret(program(graph, { grad: grad! }), { x: number(2) }).grad!.data]).toEqual([12 + 40]);
  });

  it('goes by values in the middle of a program as well', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', []);
    const middle = exp(x);
    const grads = gradients([{ value: mul(middle, x), grad: graph.scalar(1) }], [middle, x]);
    const results = interpret(program(graph, { middle: grads[0]!, x: grads[1]! }), { x: number(0.5) });
    expect(results.middle!.data[0]).toBe(0.5);
    expect(results.x!.data[0]).toBeCloseTo(1.5 * Math.exp(0.5), 14);
  });

  it('adds no node for what does not depend on the wanted values', () => {
    const graph = new Graph();
    const [x, frozen] = [graph.input('x', 'float32', [2]), graph.input('frozen', 'float32', [2])];
    const y = mul(x, exp(exp(frozen)));
    const before = graph.nodes.length;
    gradients([{ value: y, grad: graph.input('g', 'float32', [2]) }], [x]);
    expect(graph.nodes.slice(before).map(({ op }) => op)).toEqual(['Mul']);
  });

  it('lets a comparison pass no gradient', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', []);
    const y = where(lessOrEqual(x, graph.scalar(1)), mul(x, graph.scalar(3)), graph.scalar(0));
    const [grad] = gradients([{ value: y, grad: graph.scalar(1) }], [x]);
    const by = (value: number) => interpret(program(graph, { grad: grad! }), { x: number(value) }).grad!.data[0];
    expect([by(0.5), by(2)]).toEqual([3, 0]);
  });

  it('refuses values that the outputs do not depend on', () => {
    const graph = new Graph();
    const [x, other] = [graph.input('x', 'float32', []), graph.input('other', 'float32', [])];
    expect(() => gradients([{ value: exp(x), grad: graph.scalar(1) }], [x, other])).toThrow(/value 1 of wrt/);
    expect(() => gradients([], [x])).toThrow(/one output at least/);
  });

  it('refuses a seed of another shape than its value', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', ['B', 2]);
    expect(() => gradients([{ value: exp(x), grad: graph.scalar(1) }], [x])).toThrow(/\[B,2\].*\[\]/);
  });

  it('names the operation whose gradient is asked through a second output only', () => {
    const graph = new Graph();
    const [x, weight] = [graph.input('x', 'float32', [3, 2]), graph.input('weight', 'float32', [2])];
    const rstd = graph.apply('RmsNorm', [x, weight], { epsilon: 1e-5 })[1]!;
    expect(() => gradients([{ value: reduceSum(rstd, [0, 1]), grad: graph.scalar(1) }], [x])).toThrow(/RmsNorm/);
  });

  it('leaves the values that it started from as they were', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', [2]);
    const y = add(exp(x), x);
    const before = interpret(program(graph, { y }), {
      x: { dtype: 'float32', shape: [2], data: Float64Array.of(1, 2) },
    });
    gradients([{ value: y, grad: x }], [x]);
    const after = interpret(program(graph, { y }), {
      x: { dtype: 'float32', shape: [2], data: Float64Array.of(1, 2) },
    });
    expect(after).toEqual(before);
  });
});
