import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { exp } from './exp.js';

describe('Exp', () => {
  itComputes('works element by element', (random) => ({
    inputs: { a: floats(['B', random.int(1, 5)], [-4, 4]) },
    outputs: ({ a }) => ({ y: exp(a!) }),
    wrt: ['a'],
  }));

  itRefuses('what is not float32', { a: ids(['B', 2], 3) }, ({ a }) => exp(a!), ['Exp', 'int64', '[B,2]']);
});
