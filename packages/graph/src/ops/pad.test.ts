import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { pad } from './pad.js';

describe('Pad', () => {
  itComputes(
    'puts zeros around; the gradient is what lies between',
    (random) => {
      const axis = random.int(0, 1);
      return {
        inputs: { a: floats(axis === 0 ? [2, 'B'] : ['B', 2]) },
        outputs: ({ a }) => ({ y: pad(a!, axis - 2, random.int(0, 2), random.int(0, 2)) }),
        wrt: ['a'],
      };
    },
    { rounds: 6 },
  );

  itRefuses('a named axis', { a: floats(['B', 4]) }, ({ a }) => pad(a!, 0, 1, 0), ['Pad', 'axis 0', '[B,4]']);
  itRefuses('less than no zeros', { a: floats([4]) }, ({ a }) => pad(a!, 0, -1, 0), ['Pad', '-1', '[4]']);
  itRefuses('ids', { a: ids([4], 2) }, ({ a }) => pad(a!, 0, 1, 0), ['Pad', 'int64', '[4]']);
});
