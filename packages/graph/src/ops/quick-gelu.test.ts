import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { quickGelu } from './quick-gelu.js';

describe('QuickGelu', () => {
  itComputes('works element by element', (random) => ({
    inputs: { a: floats(['B', random.int(1, 5)], [-4, 4]) },
    outputs: ({ a }) => ({ y: quickGelu(a!) }),
    wrt: ['a'],
  }));

  itComputes('takes a factor inside the sigmoid', () => ({
    inputs: { a: floats([2, 'S', 3], [-4, 4]) },
    outputs: ({ a }) => ({ y: quickGelu(a!, 1.702) }),
    wrt: ['a'],
  }));

  itRefuses('what is not float32', { a: ids(['B', 2], 3) }, ({ a }) => quickGelu(a!), ['QuickGelu', 'int64', '[B,2]']);
});
