import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { oneHot } from './one-hot.js';

describe('OneHot', () => {
  itComputes('puts a one at each id', () => ({
    inputs: { a: ids(['B', 3], 4), b: ids([2, 1, 'S'], 4) },
    outputs: ({ a, b }) => ({ y: oneHot(a!, 5), z: oneHot(b!, 4) }),
    wrt: [],
  }));

  itRefuses('a single id', { a: ids([], 3) }, ({ a }) => oneHot(a!, 5), ['OneHot', 'one axis', '[]']);
  itRefuses('numbers', { a: floats(['B', 3]) }, ({ a }) => oneHot(a!, 5), ['OneHot', 'int64', 'float32', '[B,3]']);
});
