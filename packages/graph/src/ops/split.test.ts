import { describe } from 'vitest';
import { floats, itComputes, itRefuses } from '../testing/op-cases.js';
import { concat } from './concat.js';
import { mul } from './mul.js';
import { split } from './split.js';

describe('Split', () => {
  itComputes('cuts into parts and joins their gradients', () => ({
    inputs: { a: floats(['B', 6, 2]) },
    outputs: ({ a }) => {
      const [x, y, z] = split(a!, -2, [1, 3, 2]);
      return { x: x!, y: y!, z: mul(z!, z!) };
    },
    wrt: ['a'],
  }));

  itComputes('takes a part that nothing reads as zeros', () => ({
    inputs: { a: floats(['B', 5]) },
    outputs: ({ a }) => ({ y: split(a!, 1, [1, 2, 2])[1]! }),
    wrt: ['a'],
  }));

  itComputes('cuts at a named size', () => ({
    inputs: { a: floats(['T', 2]), b: floats(['S', 2]) },
    outputs: ({ a, b }) => {
      const [x, y] = split(concat([a!, b!], 0), 0, ['T', 'S']);
      return { x: x!, y: y! };
    },
    wrt: [],
  }));

  itRefuses('sizes that do not add up', { a: floats(['B', 5]) }, ({ a }) => split(a!, 1, [2, 2]), [
    'Split',
    '[2,2]',
    '[B,5]',
  ]);
});
