import { describe, expect, it } from 'vitest';
import { Graph, scalarOf } from '../graph.js';
import { add } from '../ops/add.js';
import { div } from '../ops/div.js';
import { max } from '../ops/max.js';
import { min } from '../ops/min.js';
import { mul } from '../ops/mul.js';
import { stopGradient } from '../ops/stop-gradient.js';
import { sub } from '../ops/sub.js';
import { program } from '../program.js';
import { countOps } from '../testing/count-ops.js';
import { foldConstants } from './fold.js';

describe('constant folding', () => {
  it('does the arithmetic of scalars', () => {
    const graph = new Graph();
    const n = (value: number) => graph.scalar(value);
    const value = max(min(div(mul(add(n(1), n(2)), n(5)), sub(n(4), n(2))), n(7)), n(-1));
    const folded = foldConstants(program(graph, { value }));
    expect(folded.nodes).toHaveLength(0);
    expect(scalarOf(folded.outputs[0]!.value)).toBe(7);
  });

  it('rounds as float32 does', () => {
    const graph = new Graph();
    const folded = foldConstants(program(graph, { value: div(graph.scalar(1), graph.scalar(3)) }));
    expect(scalarOf(folded.outputs[0]!.value)).toBe(Math.fround(1 / 3));
  });

  it('drops steps that change nothing, on either side', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', ['B', 2]);
    const [zero, one] = [graph.scalar(0), graph.scalar(1)];
    const value = stopGradient(div(sub(add(zero, add(mul(one, mul(x, one)), zero)), zero), one));
    const folded = foldConstants(program(graph, { value }));
    expect(folded.nodes).toHaveLength(0);
    expect(folded.outputs[0]!.value).toBe(folded.inputs[0]);
  });

  it('keeps steps that look alike but do something', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', ['B', 2]);
    const [zero, one] = [graph.scalar(0), graph.scalar(1)];
    const outputs = { a: sub(zero, x), b: div(one, x), c: mul(x, zero), d: add(x, one) };
    expect(foldConstants(program(graph, outputs)).nodes).toHaveLength(4);
  });

  it('keeps a neutral array that stretches the other side', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', [2]);
    const zeros = graph.constant(new Float32Array(6), [3, 2]);
    expect(countOps(foldConstants(program(graph, { y: add(x, zeros) })))).toEqual({ Add: 1 });
  });
});
