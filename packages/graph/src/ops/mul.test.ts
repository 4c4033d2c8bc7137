import { describe } from 'vitest';
import { broadcastPair, floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { mul } from './mul.js';

describe('Mul', () => {
  itComputes(
    'broadcasts and sums gradients over what was stretched',
    (random) => {
      const [a, b] = broadcastPair(random);
      return {
        inputs: { a: floats(a), b: floats(b) },
        outputs: ({ a, b }) => ({ y: mul(a!, b!) }),
        wrt: ['a', 'b'],
      };
    },
    { rounds: 8 },
  );

  itComputes('counts both uses of one value', () => ({
    inputs: { a: floats(['B', 3], [0.5, 2]) },
    outputs: ({ a }) => ({ y: mul(mul(a!, a!), a!) }),
    wrt: ['a'],
  }));

  itRefuses('shapes that do not broadcast', { a: floats(['B', 3]), b: floats(['B', 4]) }, ({ a, b }) => mul(a!, b!), [
    'Mul',
    '[B,3]',
    '[B,4]',
  ]);

  itRefuses('two dtypes', { a: floats([3]), b: ids([3], 2) }, ({ a, b }) => mul(a!, b!), ['Mul', 'float32', 'int64']);
});
