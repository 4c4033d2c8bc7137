import { describe } from 'vitest';
import { floats, itComputes, itRefuses } from '../testing/op-cases.js';
import { reshape } from './reshape.js';

describe('Reshape', () => {
  itComputes('splits, joins, adds and drops axes', () => ({
    inputs: { a: floats(['B', 'S', 6]) },
    outputs: ({ a }) => ({
      flat: reshape(a!, ['B*S', 6]),
      heads: reshape(a!, ['B', 'S', 2, 3]),
      one: reshape(a!, [1, 'B', 1, 'S*6']),
      all: reshape(a!, ['6*B*S']),
      turned: reshape(a!, ['S', 6, 'B']),
    }),
    wrt: ['a'],
  }));

  itComputes('knows that a product may be written in any order', () => ({
    inputs: { a: floats(['S*B', 2]), b: floats(['B', 'S']) },
    outputs: ({ a, b }) => ({ y: reshape(reshape(a!, ['S*2', 'B']), ['B*S', 2]), z: reshape(b!, ['S*B', 1]) }),
    wrt: [],
  }));

  itComputes('goes to a single number and back', () => ({
    inputs: { a: floats([1, 1]), b: floats([]) },
    outputs: ({ a, b }) => ({ y: reshape(a!, []), z: reshape(b!, [1, 1, 1]) }),
    wrt: ['a', 'b'],
  }));

  itRefuses('another number of values', { a: floats(['B', 6]) }, ({ a }) => reshape(a!, ['B', 5]), [
    'Reshape',
    '[B,6]',
    '[B,5]',
  ]);
});
