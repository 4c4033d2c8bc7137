import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { gatherElements } from './gather-elements.js';

describe('GatherElements', () => {
  itComputes('picks in each row; the gradient adds up where an id repeats', () => ({
    inputs: { a: floats(['N', 3]), places: ids(['N', 5], 3) },
    outputs: ({ a, places }) => ({ y: gatherElements(a!, places!) }),
    wrt: ['a'],
  }));

  itRefuses(
    'another number of rows',
    { a: floats(['N', 3]), places: ids(['M', 5], 3) },
    ({ a, places }) => gatherElements(a!, places!),
    ['GatherElements', '[N,3]', '[M,5]'],
  );
  itRefuses('ids that are numbers', { a: floats([2, 4]), b: floats([2, 1]) }, ({ a, b }) => gatherElements(a!, b!), [
    'GatherElements',
    'int64',
    'float32',
  ]);
});
