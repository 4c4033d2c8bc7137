import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { log } from './log.js';

describe('Log', () => {
  itComputes('works element by element', (random) => ({
    inputs: { a: floats(['B', random.int(1, 5)], [0.2, 3]) },
    outputs: ({ a }) => ({ y: log(a!) }),
    wrt: ['a'],
  }));

  itRefuses('what is not float32', { a: ids(['B', 2], 3) }, ({ a }) => log(a!), ['Log', 'int64', '[B,2]']);
});
