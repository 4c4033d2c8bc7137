import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { gather } from './gather.js';

describe('Gather', () => {
  itComputes('takes rows; the gradient adds up where an id repeats', (random) => ({
    inputs: { table: floats([3, random.int(1, 4)]), places: ids(['B', 5], 3) },
    outputs: ({ table, places }) => ({ y: gather(table!, places!) }),
    wrt: ['table'],
  }));

  itComputes('takes rows of a table with more axes, or with one, and of ids', () => ({
    inputs: { table: floats(['P', 2, 2]), line: floats([4]), labels: ids([4], 99), places: ids(['B'], 4) },
    sizes: { P: 4 },
    outputs: ({ table, line, labels, places }) => ({
      y: gather(table!, places!),
      z: gather(line!, places!),
      i: gather(labels!, places!),
    }),
    wrt: [],
  }));

  itComputes('takes a single row', () => ({
    inputs: { table: floats([3, 2]), place: ids([], 3) },
    outputs: ({ table, place }) => ({ y: gather(table!, place!) }),
    wrt: ['table'],
  }));

  itRefuses('ids that are numbers', { a: floats([2, 4]), b: floats(['B']) }, ({ a, b }) => gather(a!, b!), [
    'Gather',
    'int64',
    'float32',
    '[B]',
  ]);
});
