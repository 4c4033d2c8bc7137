import { describe, expect, it } from 'vitest';
import { gradients } from '../gradients.js';
import { Graph } from '../graph.js';
import { program } from '../program.js';
import { interpret } from '../testing/interpreter.js';
import { floats, itComputes } from '../testing/op-cases.js';
import { mul } from './mul.js';
import { stopGradient } from './stop-gradient.js';

describe('StopGradient', () => {
  itComputes('is the value itself', () => ({
    inputs: { a: floats(['B', 2]) },
    outputs: ({ a }) => ({ y: stopGradient(a!) }),
    wrt: [],
  }));

  it('counts as a constant', () => {
    const graph = new Graph();
    const a = graph.input('a', 'float32', [1]);
    const [grad] = gradients([{ value: mul(a, stopGradient(a)), grad: graph.input('g', 'float32', [1]) }], [a]);
    const one = (value: number) => ({ dtype: 'float32', shape: [1], data: Float64Array.of(value) }) as const;
    expect([...interpret(program(graph, { grad: grad! }), { a: one(3), g: one(1) }).grad!.data]).toEqual([3]);
  });
});
