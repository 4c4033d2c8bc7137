import { describe, expect, it } from 'vitest';
import { Graph } from '../graph.js';
import { add } from '../ops/add.js';
import { exp } from '../ops/exp.js';
import { matMul } from '../ops/mat-mul.js';
import { reduceSum } from '../ops/reduce-sum.js';
import { topK } from '../ops/top-k.js';
import { program } from '../program.js';
import { countOps } from '../testing/count-ops.js';
import { shareSubexpressions } from './share.js';

describe('sharing of equal subexpressions', () => {
  it('does equal work once, through any depth', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', [2, 2]);
    const chain = () => reduceSum(exp(add(x, graph.scalar(1))), [1]);
    const shared = shareSubexpressions(program(graph, { y: add(chain(), chain()), z: chain() }));
    expect(countOps(shared)).toEqual({ Add: 2, Exp: 1, ReduceSum: 1 });
  });

  it('tells attributes and the order of inputs apart', () => {
    const graph = new Graph();
    const [a, b] = [graph.input('a', 'float32', [2, 2]), graph.input('b', 'float32', [2, 2])];
    const outputs = {
      ab: matMul(a, b),
      ba: matMul(b, a),
      swapped: matMul(a, b, { transposeA: true }),
      scaled: matMul(a, b, { alpha: 2 }),
      again: matMul(a, b, { alpha: 2 }),
    };
    expect(countOps(shareSubexpressions(program(graph, outputs)))).toEqual({ MatMul: 4 });
  });

  it('shares all outputs of a node', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', ['B', 4]);
    const shared = shareSubexpressions(program(graph, { values: topK(x, 2).values, indices: topK(x, 2).indices }));
    expect(countOps(shared)).toEqual({ TopK: 1 });
  });

  it('lets dead nodes fall away', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', [2]);
    exp(exp(x));
    const shared = shareSubexpressions(program(graph, { y: add(x, x) }));
    expect(shared.nodes.map(({ op }) => op)).toEqual(['Add']);
  });

  it('keeps inputs that nothing reads, so that callers can feed them always', () => {
    const graph = new Graph();
    const x = graph.input('x', 'float32', [2]);
    graph.input('unused', 'int64', ['B']);
    expect(shareSubexpressions(program(graph, { y: exp(x) })).inputs).toHaveLength(2);
  });
});
