import { describe } from 'vitest';
import { floats, itComputes, itRefuses } from '../testing/op-cases.js';
import { reduceSum } from './reduce-sum.js';

describe('ReduceSum', () => {
  itComputes(
    'works over any axes, kept or not',
    (random) => {
      const axes = [-4, 1, -2, 3].filter(() => random.int(0, 1) === 1);
      const over = axes.length === 0 ? [-1] : axes;
      return {
        inputs: { a: floats(['B', 3, 'S', 2]) },
        outputs: ({ a }) => ({ y: reduceSum(a!, over), kept: reduceSum(a!, over, { keepDims: true }) }),
        wrt: ['a'],
      };
    },
    { rounds: 6 },
  );

  itComputes('of all axes is one number', () => ({
    inputs: { a: floats([3, 2]) },
    outputs: ({ a }) => ({ y: reduceSum(a!, [0, 1]) }),
    wrt: ['a'],
  }));

  itRefuses('an axis that is not there', { a: floats(['B', 2]) }, ({ a }) => reduceSum(a!, [2]), [
    'ReduceSum',
    '[2]',
    '[B,2]',
  ]);
  itRefuses('one axis twice', { a: floats(['B', 2]) }, ({ a }) => reduceSum(a!, [1, -1]), [
    'ReduceSum',
    '[1,1]',
    '[B,2]',
  ]);
  itRefuses('no axes', { a: floats(['B', 2]) }, ({ a }) => reduceSum(a!, []), ['ReduceSum', '[]', '[B,2]']);
});
