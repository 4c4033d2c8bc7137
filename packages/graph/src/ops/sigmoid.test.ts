import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { sigmoid } from './sigmoid.js';

describe('Sigmoid', () => {
  itComputes('works element by element', (random) => ({
    inputs: { a: floats(['B', random.int(1, 5)], [-4, 4]) },
    outputs: ({ a }) => ({ y: sigmoid(a!) }),
    wrt: ['a'],
  }));

  itComputes('stays finite far out', () => ({
    inputs: { a: floats([64], [-200, 200]) },
    outputs: ({ a }) => ({ y: sigmoid(a!) }),
    wrt: ['a'],
  }));

  itRefuses('what is not float32', { a: ids(['B', 2], 3) }, ({ a }) => sigmoid(a!), ['Sigmoid', 'int64', '[B,2]']);
});
