import { describe } from 'vitest';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { rotaryEmbedding } from './rotary-embedding.js';

describe('RotaryEmbedding', () => {
  const tables = { positions: ids(['B', 'S'], 9), cos: floats([9, 2], [-1, 1]), sin: floats([9, 2], [-1, 1]) };

  for (const inverse of [false, true]) {
    itComputes(
      `rotates ${inverse ? 'backward' : 'forward'}; the gradient goes the other way`,
      (random) => {
        const heads = random.int(1, 3);
        return {
          inputs: { x: floats(['B', 'S', 4 * heads]), ...tables },
          outputs: ({ x, positions, cos, sin }) => ({
            y: x!.graph.apply('RotaryEmbedding', [x!, positions!, cos!, sin!], { heads, inverse })[0]!,
          }),
          wrt: ['x'],
        };
      },
      { rounds: 4 },
    );
  }

  itComputes('rotates by the builder', () => ({
    inputs: { x: floats(['B', 'S', 8]), ...tables },
    outputs: ({ x, positions, cos, sin }) => ({
      y: rotaryEmbedding(x!, 2, { positions: positions!, cos: cos!, sin: sin! }),
    }),
    wrt: ['x'],
  }));

  itRefuses(
    'positions of the wrong dtype',
    { x: floats(['B', 'S', 8]), ...tables, positions: floats(['B', 'S']) },
    ({ x, positions, cos, sin }) => rotaryEmbedding(x!, 2, { positions: positions!, cos: cos!, sin: sin! }),
    ['RotaryEmbedding', 'int64', '[B,S,8]', '[B,S]'],
  );
  itRefuses(
    'a width that the heads do not divide',
    { x: floats(['B', 'S', 10]), ...tables },
    ({ x, positions, cos, sin }) => rotaryEmbedding(x!, 2, { positions: positions!, cos: cos!, sin: sin! }),
    ['RotaryEmbedding', '[B,S,10]', '2 heads'],
  );
  itRefuses(
    'tables of another width',
    { x: floats(['B', 'S', 12]), ...tables },
    ({ x, positions, cos, sin }) => rotaryEmbedding(x!, 2, { positions: positions!, cos: cos!, sin: sin! }),
    ['RotaryEmbedding', '[9,2]', '[P,3]'],
  );
});
