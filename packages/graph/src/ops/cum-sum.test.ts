import { describe } from 'vitest';
import { gradients } from '../gradients.js';
import { floats, itComputes, itRefuses } from '../testing/op-cases.js';
import { cumSum } from './cum-sum.js';

describe('CumSum', () => {
  itComputes('adds up along an axis, each place included', () => ({
    inputs: { a: floats(['B', 5]) },
    outputs: ({ a }) => ({ along: cumSum(a!, -1), down: cumSum(a!, 0) }),
    wrt: [],
  }));

  itRefuses('an axis that is not there', { a: floats(['B', 5]) }, ({ a }) => cumSum(a!, 2), ['CumSum', '[B,5]', '2']);

  itRefuses(
    'a gradient, which is not written',
    { a: floats([2]), g: floats([2]) },
    ({ a, g }) => gradients([{ value: cumSum(a!, 0), grad: g! }], [a!]),
    ['CumSum', 'stopGradient'],
  );
});
