import { describe, expect, it } from 'vitest';
import { Graph, scalarOf } from './graph.js';
import { add } from './ops/add.js';
import { exp } from './ops/exp.js';
import { program } from './program.js';

describe('Graph', () => {
  it('makes equal scalars one value, after rounding to float32, and tells 0 from −0', () => {
    const graph = new Graph();
    expect(graph.scalar(0.1)).toBe(graph.scalar(Math.fround(0.1)));
    expect(graph.scalar(0)).not.toBe(graph.scalar(-0));
    expect(scalarOf(graph.scalar(-0))).toBe(-0);
  });

  it('refuses a second input of one name, constants of the wrong length and values of another graph', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', [2]);
    expect(() => graph.input('x', 'float32', [2])).toThrow(/x exists/);
    expect(() => graph.constant(new Float32Array(3), [2, 2])).toThrow(/\[2,2\] needs 4 values, got 3/);
    const other = new Graph().input('y', 'float32', [2]);
    expect(() => add(x, other)).toThrow(/Add.*another graph/);
    expect(() => program(graph, { other })).toThrow(/another graph/);
  });

  it('takes only a scalar constant for a number', () => {
    const graph = new Graph();
    expect(scalarOf(graph.constant(Float32Array.of(3), [1]))).toBeUndefined();
    expect(scalarOf(graph.constant(BigInt64Array.of(3n), []))).toBeUndefined();
    expect(scalarOf(graph.input('x', 'float32', []))).toBeUndefined();
  });

  it('leaves out of a program what its outputs do not need', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', [2]);
    const [used] = [exp(x), add(x, x)];
    expect(program(graph, { used: used! }).nodes.map(({ op }) => op)).toEqual(['Exp']);
  });
});
