import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { concat } from './concat.js';
import { matMul } from './mat-mul.js';
import { mul } from './mul.js';

describe('Concat', () => {
  itComputes('joins along any axis and cuts the gradient again', (random) => {
    const axis = random.int(0, 2);
    const part = (size: number) => floats([2, 'B', 3].map((d, i) => (i === axis ? size : d)));
    return {
      inputs: { a: part(random.int(1, 3)), b: part(random.int(1, 3)), c: part(1) },
      outputs: ({ a, b, c }) => ({ y: concat([a!, b!, c!, a!], axis - 3) }),
      wrt: ['a', 'b', 'c'],
    };
  });

  itComputes('joins named sizes, ids and numbers', () => ({
    inputs: { a: floats(['B', 'T', 2]), b: floats(['B', 1, 2]), c: ids(['T'], 5), d: ids(['S'], 5) },
    outputs: ({ a, b, c, d }) => ({ y: concat([a!, b!], 1), z: concat([c!, d!, c!], 0) }),
    wrt: [],
  }));

  itComputes('cuts the gradient at named sizes', () => ({
    inputs: { a: floats(['T', 2]), b: floats(['S', 2]), w: floats([2, 3]) },
    outputs: ({ a, b, w }) => ({ y: matMul(concat([a!, b!, a!], 0), w!) }),
    wrt: ['a', 'b'],
  }));

  itComputes('of one part is the part', () => ({
    inputs: { a: floats(['B', 2]) },
    outputs: ({ a }) => ({ y: mul(concat([a!], 0), a!) }),
    wrt: ['a'],
  }));

  itRefuses(
    'parts that differ elsewhere',
    { a: floats(['B', 2, 3]), b: floats(['B', 2, 4]) },
    ({ a, b }) => concat([a!, b!], 1),
    ['Concat', 'axis 1', '[B,2,3]', '[B,2,4]'],
  );

  itRefuses('two dtypes', { a: floats([2]), b: ids([2], 2) }, ({ a, b }) => concat([a!, b!], 0), [
    'Concat',
    'float32',
    'int64',
  ]);
});
