import { describe } from 'vitest';
import { floats, itComputes, itRefuses } from '../testing/op-cases.js';
import { transpose } from './transpose.js';

describe('Transpose', () => {
  itComputes(
    'moves axes and moves the gradient back',
    (random) => {
      const axes = [0, 1, 2, 3].map((axis) => ({ axis, key: random.uniform() })).sort((a, b) => a.key - b.key);
      return {
        inputs: { a: floats(['B', 2, 'S', 3]) },
        outputs: ({ a }) => ({
          y: transpose(
            a!,
            axes.map(({ axis }) => axis),
          ),
        }),
        wrt: ['a'],
      };
    },
    { rounds: 5 },
  );

  itRefuses('axes that do not permute', { a: floats(['B', 2]) }, ({ a }) => transpose(a!, [0, 0]), [
    'Transpose',
    '[0,0]',
    '[B,2]',
  ]);
  itRefuses('too few axes', { a: floats(['B', 2]) }, ({ a }) => transpose(a!, [0]), ['Transpose', '[0]', '[B,2]']);
});
