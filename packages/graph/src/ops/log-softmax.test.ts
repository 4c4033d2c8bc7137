import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { logSoftmax } from './log-softmax.js';

describe('LogSoftmax', () => {
  itComputes('works over the last axis', (random) => ({
    inputs: { a: floats(['B', 'S', random.int(1, 6)], [-5, 5]) },
    outputs: ({ a }) => ({ y: logSoftmax(a!) }),
    wrt: ['a'],
  }));

  itComputes('stays finite for large logits', () => ({
    inputs: { a: floats([4, 5], [900, 1000]) },
    outputs: ({ a }) => ({ y: logSoftmax(a!) }),
    wrt: [],
  }));

  itComputes('works over a named axis', () => ({
    inputs: { a: floats(['S', 'T']) },
    outputs: ({ a }) => ({ y: logSoftmax(a!) }),
    wrt: ['a'],
  }));

  itRefuses('a single number', { a: floats([]) }, ({ a }) => logSoftmax(a!), ['LogSoftmax', '[]']);
  itRefuses('ids', { a: ids(['B', 3], 2) }, ({ a }) => logSoftmax(a!), ['LogSoftmax', 'int64', '[B,3]']);
});
