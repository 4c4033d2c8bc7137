import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { cast } from './cast.js';
import { equal } from './equal.js';

describe('Equal', () => {
  itComputes('compares ids, equal ones among them, as bool', () => ({
    inputs: { a: ids(['B', 3], 3), b: ids([3], 3) },
    outputs: ({ a, b }) => ({ y: equal(a!, b!) }),
    wrt: [],
  }));

  itComputes('compares numbers', () => ({
    inputs: { a: floats(['B', 1, 4]), b: floats(['S', 4]) },
    outputs: ({ a, b }) => ({ y: equal(a!, b!), same: cast(equal(a!, a!), 'float32') }),
    wrt: [],
  }));

  itRefuses('two dtypes', { a: floats([3]), b: ids([3], 2) }, ({ a, b }) => equal(a!, b!), [
    'Equal',
    'float32',
    'int64',
  ]);

  itRefuses('shapes that do not broadcast', { a: floats([2, 3]), b: floats([2, 4]) }, ({ a, b }) => equal(a!, b!), [
    'Equal',
    '[2,3]',
    '[2,4]',
  ]);
});
