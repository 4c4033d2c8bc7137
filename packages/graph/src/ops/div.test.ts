import { describe } from 'vitest';
import { broadcastPair, floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { div } from './div.js';

describe('Div', () => {
  itComputes(
    'broadcasts and sums gradients over what was stretched',
    (random) => {
      const [a, b] = broadcastPair(random);
      return {
        inputs: { a: floats(a), b: floats(b, [0.5, 2]) },
        outputs: ({ a, b }) => ({ y: div(a!, b!) }),
        wrt: ['a', 'b'],
      };
    },
    { rounds: 8 },
  );

  itComputes('counts both uses of one value', () => ({
    inputs: { a: floats(['B', 3], [0.5, 2]) },
    outputs: ({ a }) => ({ y: div(div(a!, a!), a!) }),
    wrt: ['a'],
  }));

  itRefuses('shapes that do not broadcast', { a: floats(['B', 3]), b: floats(['B', 4]) }, ({ a, b }) => div(a!, b!), [
    'Div',
    '[B,3]',
    '[B,4]',
  ]);

  itRefuses('two dtypes', { a: floats([3]), b: ids([3], 2) }, ({ a, b }) => div(a!, b!), ['Div', 'float32', 'int64']);
});
