import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { neg } from './neg.js';

describe('Neg', () => {
  itComputes('works element by element', (random) => ({
    inputs: { a: floats(['B', random.int(1, 5)], [-4, 4]) },
    outputs: ({ a }) => ({ y: neg(a!) }),
    wrt: ['a'],
  }));

  itRefuses('what is not float32', { a: ids(['B', 2], 3) }, ({ a }) => neg(a!), ['Neg', 'int64', '[B,2]']);
});
