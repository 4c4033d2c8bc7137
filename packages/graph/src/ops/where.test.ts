import { describe, expect, it } from 'vitest';
import { gradients } from '../gradients.js';
import { Graph } from '../graph.js';
import { program } from '../program.js';
import { interpret } from '../testing/interpreter.js';
import { bools, broadcastPair, floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { log } from './log.js';
import { where } from './where.js';

describe('Where', () => {
  itComputes(
    'chooses, broadcasts, and gives the gradient to what was chosen',
    (random) => {
      const [a, b] = broadcastPair(random);
      return {
        inputs: { condition: bools(['P', 2, ...(a.length > b.length ? a : b)]), a: floats(a), b: floats(b) },
        outputs: ({ condition, a, b }) => ({ y: where(condition!, a!, b!) }),
        wrt: ['a', 'b'],
      };
    },
    { rounds: 6 },
  );

  itComputes('chooses ids', () => ({
    inputs: { condition: bools(['B']), a: ids(['B'], 9), b: ids([], 9) },
    outputs: ({ condition, a, b }) => ({ y: where(condition!, a!, b!) }),
    wrt: [],
  }));

  it('keeps an infinity that was not chosen out of the gradient', () => {
    const graph = new Graph();
    const a = graph.input('a', 'float32', [2]);
    const mask = graph.input('mask', 'bool', [2]);
    const [grad] = gradients(
      [{ value: where(mask, log(a), graph.scalar(0)), grad: graph.input('g', 'float32', [2]) }],
      [a],
    );
    const feeds = {
      a: { dtype: 'float32', shape: [2], data: Float64Array.of(2, 1) },
      g: { dtype: 'float32', shape: [2], data: Float64Array.of(1, 1) },
      mask: { dtype: 'bool', shape: [2], data: Float64Array.of(1, 0) },
    } as const;
    expect([...interpret(program(graph, { grad: grad! }), feeds).grad!.data]).toEqual([0.5, 0]);
  });

  itRefuses('a condition of numbers', { a: floats([2]) }, ({ a }) => where(a!, a!, a!), [
    'Where',
    'bool',
    'float32',
    '[2]',
  ]);

  itRefuses(
    'choices of two dtypes',
    { condition: bools([2]), a: floats([2]), b: ids([2], 2) },
    ({ condition, a, b }) => where(condition!, a!, b!),
    ['Where', 'float32', 'int64'],
  );

  itRefuses(
    'shapes that do not broadcast',
    { condition: bools([3]), a: floats([2]), b: floats([2]) },
    ({ condition, a, b }) => where(condition!, a!, b!),
    ['Where', '[3]', '[2]'],
  );
});
