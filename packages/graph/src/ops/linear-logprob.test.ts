import { describe } from 'vitest';
import { gradients } from '../gradients.js';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { linearLogprob } from './linear-logprob.js';

describe('LinearLogprob', () => {
  for (const k of [1, 3]) {
    itComputes(`gives ${k} log-probabilities a row, of ids that may repeat`, () => ({
      inputs: { x: floats(['N', 4]), weight: floats([3, 4]), targets: ids(['N', k], 3) },
      outputs: ({ x, weight, targets }) => ({ y: linearLogprob(x!, weight!, targets!) }),
      wrt: ['x'],
    }));
  }

  itComputes('keeps the expected row as its second output', () => ({
    inputs: { x: floats(['N', 4]), weight: floats([5, 4]), targets: ids(['N', 2], 5) },
    outputs: ({ x, weight, targets }) => {
      const [y, expected] = x!.graph.apply('LinearLogprob', [x!, weight!, targets!]);
      return { y: y!, expected: expected! };
    },
    wrt: [],
  }));

  itComputes('stays finite for large logits', () => ({
    inputs: { x: floats(['N', 2], [30, 40]), weight: floats([5, 2], [-40, 40]), targets: ids(['N', 1], 5) },
    outputs: ({ x, weight, targets }) => ({ y: linearLogprob(x!, weight!, targets!) }),
    wrt: [],
  }));

  itRefuses(
    'another number of rows',
    { x: floats(['N', 4]), weight: floats([5, 4]), targets: ids(['M', 1], 5) },
    ({ x, weight, targets }) => linearLogprob(x!, weight!, targets!),
    ['LinearLogprob', '[N,4]', '[5,4]', '[M,1]'],
  );
  itRefuses(
    'a gradient by its frozen weight',
    { x: floats([2, 4]), weight: floats([5, 4]), targets: ids([2, 1], 5), g: floats([2, 1]) },
    ({ x, weight, targets, g }) =>
      gradients([{ value: linearLogprob(x!, weight!, targets!), grad: g! }], [x!, weight!]),
    ['LinearLogprob', 'frozen', 'logSoftmax'],
  );
});
