import { describe } from 'vitest';
import { gradients } from '../gradients.js';
import { floats, itComputes, itRefuses } from '../testing/op-cases.js';
import { reduceMean } from './reduce-mean.js';

describe('ReduceMean', () => {
  itComputes(
    'works over any axes, kept or not',
    (random) => {
      const axes = [-4, 1, -2, 3].filter(() => random.int(0, 1) === 1);
      const over = axes.length === 0 ? [-1] : axes;
      return {
        inputs: { a: floats([2, 3, 4, 2]) },
        outputs: ({ a }) => ({ y: reduceMean(a!, over), kept: reduceMean(a!, over, { keepDims: true }) }),
        wrt: ['a'],
      };
    },
    { rounds: 6 },
  );

  itComputes('of all axes is one number', () => ({
    inputs: { a: floats([3, 2]) },
    outputs: ({ a }) => ({ y: reduceMean(a!, [0, 1]) }),
    wrt: ['a'],
  }));

  itRefuses('an axis that is not there', { a: floats(['B', 2]) }, ({ a }) => reduceMean(a!, [2]), [
    'ReduceMean',
    '[2]',
    '[B,2]',
  ]);
  itRefuses('one axis twice', { a: floats(['B', 2]) }, ({ a }) => reduceMean(a!, [1, -1]), [
    'ReduceMean',
    '[1,1]',
    '[B,2]',
  ]);
  itRefuses('no axes', { a: floats(['B', 2]) }, ({ a }) => reduceMean(a!, []), ['ReduceMean', '[]', '[B,2]']);

  itRefuses(
    'a gradient over an axis whose size is not known',
    { a: floats(['B', 2]), g: floats([2]) },
    ({ a, g }) => gradients([{ value: reduceMean(a!, [0]), grad: g! }], [a!]),
    ['[B,2]', 'fixed size'],
  );
});
