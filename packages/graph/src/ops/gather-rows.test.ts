import { describe } from 'vitest';
import { gradients } from '../gradients.js';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { gatherRows } from './gather-rows.js';

describe('GatherRows', () => {
  itComputes('takes one row of each', () => ({
    inputs: { a: floats(['B', 4, 3]), places: ids(['B', 1], 4) },
    outputs: ({ a, places }) => ({ y: gatherRows(a!, places!) }),
    wrt: [],
  }));

  itRefuses(
    'ids of another shape',
    { a: floats(['B', 4, 3]), places: ids(['B', 2], 4) },
    ({ a, places }) => gatherRows(a!, places!),
    ['GatherRows', '[B,4,3]', '[B,2]'],
  );
  itRefuses('ids that are numbers', { a: floats([2, 4, 3]), b: floats([2, 1]) }, ({ a, b }) => gatherRows(a!, b!), [
    'GatherRows',
    'int64',
    'float32',
  ]);
  itRefuses(
    'a gradient, which is not written',
    { a: floats([2, 4, 3]), places: ids([2, 1], 4), g: floats([2, 3]) },
    ({ a, places, g }) => gradients([{ value: gatherRows(a!, places!), grad: g! }], [a!]),
    ['GatherRows', 'stopGradient'],
  );
});
