import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { rmsNorm } from './rms-norm.js';

describe('RmsNorm', () => {
  itComputes('normalises rows; gradients by rows and weight', (random) => {
    const width = random.int(1, 6);
    return {
      inputs: { x: floats(['B', 'S', width]), weight: floats([width]) },
      outputs: ({ x, weight }) => ({ y: rmsNorm(x!, weight!, 1e-5) }),
      wrt: ['x', 'weight'],
    };
  });

  itComputes('works on a single row, and with a large epsilon', () => ({
    inputs: { x: floats([4]), rows: floats(['N', 4]), weight: floats([4]) },
    outputs: ({ x, rows, weight }) => ({ y: rmsNorm(x!, weight!, 0.5), z: rmsNorm(rows!, weight!, 0.5) }),
    wrt: ['rows'],
  }));

  itComputes('has the reciprocal root as its second output', () => ({
    inputs: { x: floats(['B', 'S', 4]), weight: floats([4]) },
    outputs: ({ x, weight }) => {
      const [y, rstd] = x!.graph.apply('RmsNorm', [x!, weight!], { epsilon: 1e-6 });
      return { y: y!, rstd: rstd! };
    },
    wrt: [],
  }));

  itRefuses(
    'a weight of another length',
    { x: floats(['B', 4]), weight: floats([3]) },
    ({ x, weight }) => rmsNorm(x!, weight!, 1e-5),
    ['RmsNorm', '[3]', '[B,4]'],
  );
  itRefuses('ids', { x: ids(['B', 4], 2), weight: floats([4]) }, ({ x, weight }) => rmsNorm(x!, weight!, 1e-5), [
    'RmsNorm',
    'int64',
  ]);
});
