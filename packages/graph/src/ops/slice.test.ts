import { describe, expect, it } from 'vitest';
import { gradients } from '../gradients.js';
import { Graph } from '../graph.js';
import { program } from '../program.js';
import { interpret } from '../testing/interpreter.js';
import { floats, itComputes, itRefuses } from '../testing/op-cases.js';
import { mul } from './mul.js';
import { slice } from './slice.js';

describe('Slice', () => {
  itComputes('cuts any axis; the gradient has zeros around it', (random) => {
    const axis = random.int(0, 2);
    const [start, length] = [random.int(0, 2), random.int(1, 2)];
    return {
      inputs: { a: floats(['B', 'S', 2].map((d, i) => (i === axis ? 4 : d))) },
      outputs: ({ a }) => ({ y: slice(a!, axis - 3, start, start + length), whole: slice(a!, axis, 0, 4) }),
      wrt: ['a'],
    };
  });

  itComputes('adds up the gradients of overlapping cuts', () => ({
    inputs: { a: floats(['B', 5]) },
    outputs: ({ a }) => ({ y: mul(slice(a!, 1, 0, 3), slice(a!, 1, 2, 5)) }),
    wrt: ['a'],
  }));

  it('gives zero, not NaN, beside an infinity', () => {
    const graph = new Graph();
    const a = graph.input('a', 'float32', [3]);
    const [grad] = gradients([{ value: slice(a, 0, 1, 2), grad: graph.input('g', 'float32', [1]) }], [a]);
    const feeds = {
      a: { dtype: 'float32', shape: [3], data: Float64Array.of(Number.POSITIVE_INFINITY, 1, Number.NaN) },
      g: { dtype: 'float32', shape: [1], data: Float64Array.of(5) },
    } as const;
    expect([...interpret(program(graph, { grad: grad! }), feeds).grad!.data]).toEqual([0, 5, 0]);
  });

  itRefuses('places outside', { a: floats(['B', 4]) }, ({ a }) => slice(a!, 1, 2, 5), ['Slice', '2..5', '[B,4]']);
  itRefuses('nothing', { a: floats(['B', 4]) }, ({ a }) => slice(a!, 1, 2, 2), ['Slice', '2..2', '[B,4]']);
  itRefuses('a named axis', { a: floats(['B', 4]) }, ({ a }) => slice(a!, 0, 0, 1), ['Slice', 'axis 0', '[B,4]']);
  itRefuses('an axis that is not there', { a: floats(['B', 4]) }, ({ a }) => slice(a!, 2, 0, 1), [
    'Slice',
    'axis 2',
    '[B,4]',
  ]);
});
