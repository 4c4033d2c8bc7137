import { describe } from 'vitest';
import { broadcastPair, floats, itComputes, itRefuses } from '../testing/op-cases.js';
import { min } from './min.js';

describe('Min', () => {
  itComputes(
    'broadcasts and gives the gradient to the side it took',
    (random) => {
      const [a, b] = broadcastPair(random);
      return { inputs: { a: floats(a), b: floats(b) }, outputs: ({ a, b }) => ({ y: min(a!, b!) }), wrt: ['a', 'b'] };
    },
    { rounds: 8 },
  );

  itComputes('of a value and itself is the value', () => ({
    inputs: { a: floats(['B', 3]) },
    outputs: ({ a }) => ({ y: min(a!, a!) }),
    wrt: ['a'],
  }));

  itRefuses('shapes that do not broadcast', { a: floats([2, 3]), b: floats(['B', 3]) }, ({ a, b }) => min(a!, b!), [
    'Min',
    '[2,3]',
    '[B,3]',
  ]);
});
