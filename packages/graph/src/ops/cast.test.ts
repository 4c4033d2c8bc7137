import { describe } from 'vitest';
import { bools, floats, ids, itComputes } from '../testing/op-cases.js';
import { cast } from './cast.js';
import { mul } from './mul.js';

describe('Cast', () => {
  itComputes('turns flags and ids to numbers and numbers to ids', () => ({
    inputs: { flags: bools(['B', 3]), places: ids([4], 9), numbers: floats(['B'], [-3, 3]) },
    outputs: ({ flags, places, numbers }) => ({
      ones: cast(flags!, 'float32'),
      floats: cast(places!, 'float32'),
      whole: cast(numbers!, 'int64'),
      known: cast(places!, 'bool'),
    }),
    wrt: [],
  }));

  itComputes('passes no gradient, and leaves the other ways alone', () => ({
    inputs: { a: floats(['B', 3]), mask: bools(['B', 3]) },
    outputs: ({ a, mask }) => ({ y: mul(a!, cast(mask!, 'float32')) }),
    wrt: ['a'],
  }));
});
