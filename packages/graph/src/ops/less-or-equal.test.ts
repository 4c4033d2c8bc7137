import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { cast } from './cast.js';
import { lessOrEqual } from './less-or-equal.js';

describe('LessOrEqual', () => {
  itComputes('compares ids, equal ones among them, as bool', () => ({
    inputs: { a: ids(['B', 3], 3), b: ids([3], 3) },
    outputs: ({ a, b }) => ({ y: lessOrEqual(a!, b!) }),
    wrt: [],
  }));

  itComputes('compares numbers', () => ({
    inputs: { a: floats(['B', 1, 4]), b: floats(['S', 4]) },
    outputs: ({ a, b }) => ({ y: lessOrEqual(a!, b!), same: cast(lessOrEqual(a!, a!), 'float32') }),
    wrt: [],
  }));

  itRefuses('two dtypes', { a: floats([3]), b: ids([3], 2) }, ({ a, b }) => lessOrEqual(a!, b!), [
    'LessOrEqual',
    'float32',
    'int64',
  ]);

  itRefuses(
    'shapes that do not broadcast',
    { a: floats([2, 3]), b: floats([2, 4]) },
    ({ a, b }) => lessOrEqual(a!, b!),
    ['LessOrEqual', '[2,3]', '[2,4]'],
  );
});
