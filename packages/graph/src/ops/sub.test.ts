import { describe } from 'vitest';
import { broadcastPair, floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { sub } from './sub.js';

describe('Sub', () => {
  itComputes(
    'broadcasts and sums gradients over what was stretched',
    (random) => {
      const [a, b] = broadcastPair(random);
      return {
        inputs: { a: floats(a), b: floats(b) },
        outputs: ({ a, b }) => ({ y: sub(a!, b!) }),
        wrt: ['a', 'b'],
      };
    },
    { rounds: 8 },
  );

  itComputes('counts both uses of one value', () => ({
    inputs: { a: floats(['B', 3], [0.5, 2]) },
    outputs: ({ a }) => ({ y: sub(sub(a!, a!), a!) }),
    wrt: ['a'],
  }));

  itRefuses('shapes that do not broadcast', { a: floats(['B', 3]), b: floats(['B', 4]) }, ({ a, b }) => sub(a!, b!), [
    'Sub',
    '[B,3]',
    '[B,4]',
  ]);

  itRefuses('two dtypes', { a: floats([3]), b: ids([3], 2) }, ({ a, b }) => sub(a!, b!), ['Sub', 'float32', 'int64']);
});
