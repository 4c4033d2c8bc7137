import { describe } from 'vitest';
import { broadcastPair, floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { add } from './add.js';

describe('Add', () => {
  itComputes(
    'broadcasts and sums gradients over what was stretched',
    (random) => {
      const [a, b] = broadcastPair(random);
      return {
        inputs: { a: floats(a), b: floats(b) },
        outputs: ({ a, b }) => ({ y: add(a!, b!) }),
        wrt: ['a', 'b'],
      };
    },
    { rounds: 8 },
  );

  itComputes('counts both uses of one value', () => ({
    inputs: { a: floats(['B', 3], [0.5, 2]) },
    outputs: ({ a }) => ({ y: add(add(a!, a!), a!) }),
    wrt: ['a'],
  }));

  itRefuses('shapes that do not broadcast', { a: floats(['B', 3]), b: floats(['B', 4]) }, ({ a, b }) => add(a!, b!), [
    'Add',
    '[B,3]',
    '[B,4]',
  ]);

  itRefuses('two dtypes', { a: floats([3]), b: ids([3], 2) }, ({ a, b }) => add(a!, b!), ['Add', 'float32', 'int64']);
});
