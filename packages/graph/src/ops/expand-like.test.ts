import { describe } from 'vitest';
import { floats, itComputes, itRefuses } from '../testing/op-cases.js';
import { concat } from './concat.js';
import { expandLike } from './expand-like.js';

describe('ExpandLike', () => {
  itComputes('stretches, and sums the gradient over what was stretched', () => ({
    inputs: { a: floats(['B', 1, 3]), b: floats([]), like: floats([2, 'B', 'S', 3]) },
    outputs: ({ a, b, like }) => ({ y: expandLike(a!, like!), z: expandLike(b!, like!) }),
    wrt: ['a', 'b'],
  }));

  itComputes('stretches to a size that only another value has', () => ({
    inputs: { a: floats(['B', 1]), b: floats(['B', 'T']) },
    outputs: ({ a, b }) => ({ y: expandLike(a!, concat([b!, a!], 1)) }),
    wrt: ['a'],
  }));

  itRefuses(
    'a shape that does not stretch to the other',
    { a: floats(['B', 3]), like: floats(['B', 1]) },
    ({ a, like }) => expandLike(a!, like!),
    ['ExpandLike', '[B,3]', '[B,1]'],
  );
});
