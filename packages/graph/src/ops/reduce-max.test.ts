import { describe } from 'vitest';
import { gradients } from '../gradients.js';
import { floats, itComputes, itRefuses } from '../testing/op-cases.js';
import { reduceMax } from './reduce-max.js';

describe('ReduceMax', () => {
  itComputes(
    'works over any axes, kept or not',
    (random) => {
      const axes = [-4, 1, -2, 3].filter(() => random.int(0, 1) === 1);
      const over = axes.length === 0 ? [-1] : axes;
      return {
        inputs: { a: floats(['B', 3, 'S', 2]) },
        outputs: ({ a }) => ({ y: reduceMax(a!, over), kept: reduceMax(a!, over, { keepDims: true }) }),
        wrt: [],
      };
    },
    { rounds: 6 },
  );

  itComputes('of all axes is one number', () => ({
    inputs: { a: floats([3, 2]) },
    outputs: ({ a }) => ({ y: reduceMax(a!, [0, 1]) }),
    wrt: [],
  }));

  itRefuses('an axis that is not there', { a: floats(['B', 2]) }, ({ a }) => reduceMax(a!, [2]), [
    'ReduceMax',
    '[2]',
    '[B,2]',
  ]);
  itRefuses('one axis twice', { a: floats(['B', 2]) }, ({ a }) => reduceMax(a!, [1, -1]), [
    'ReduceMax',
    '[1,1]',
    '[B,2]',
  ]);
  itRefuses('no axes', { a: floats(['B', 2]) }, ({ a }) => reduceMax(a!, []), ['ReduceMax', '[]', '[B,2]']);

  itRefuses(
    'a gradient, which is not written',
    { a: floats([2]), g: floats([]) },
    ({ a, g }) => gradients([{ value: reduceMax(a!, [0]), grad: g! }], [a!]),
    ['ReduceMax', 'stopGradient'],
  );
});
