import { describe } from 'vitest';
import { gradients } from '../gradients.js';
import { floats, itComputes, itRefuses } from '../testing/op-cases.js';
import { topK } from './top-k.js';

describe('TopK', () => {
  itComputes('sorts values and places, largest first', () => ({
    inputs: { a: floats(['B', 'S', 6]) },
    outputs: ({ a }) => ({ ...topK(a!, 3) }),
    wrt: [],
  }));

  itComputes('gives places alone', () => ({
    inputs: { a: floats(['B', 4]) },
    outputs: ({ a }) => ({ places: topK(a!, 4).indices }),
    wrt: [],
  }));

  itRefuses('more than there are', { a: floats(['B', 4]) }, ({ a }) => topK(a!, 5), ['TopK', '[B,4]', '5']);
  itRefuses('none', { a: floats(['B', 4]) }, ({ a }) => topK(a!, 0), ['TopK', '[B,4]', '0']);
  itRefuses(
    'a gradient, which is not written',
    { a: floats([2]), g: floats([1]) },
    ({ a, g }) => gradients([{ value: topK(a!, 1).values, grad: g! }], [a!]),
    ['TopK', 'stopGradient'],
  );
});
