import { describe } from 'vitest';
import type { Shape } from '../shape.js';
import { floats, ids, itComputes, itRefuses } from '../testing/op-cases.js';
import { matMul } from './mat-mul.js';

const swapped = (shape: Shape, swap: boolean): Shape =>
  swap ? [...shape.slice(0, -2), shape.at(-1)!, shape.at(-2)!] : shape;

/** Left and right side before swaps: M x K and K x N under leading axes that broadcast. */
const sides: readonly (readonly [string, Shape, Shape])[] = [
  ['two axes', ['M', 3], [3, 'N']],
  ['three axes and a shared right side', ['B', 'M', 3], [3, 2]],
  ['four axes and a shared right side', ['B', 2, 'M', 3], [3, 'N']],
  ['four axes on both sides', ['B', 2, 'M', 3], ['B', 2, 3, 'N']],
  ['a shared left side', ['M', 3], ['B', 3, 2]],
  ['stretched heads, as grouped queries need', [2, 'B', 2, 'M', 2], [2, 'B', 1, 2, 'N']],
  ['a stretched left side', ['B', 1, 2, 3], [2, 3, 'N']],
];

describe('MatMul', () => {
  for (const [title, left, right] of sides) {
    for (const [transposeA, transposeB] of [
      [false, false],
      [false, true],
      [true, false],
      [true, true],
    ] as const) {
      itComputes(
        `multiplies ${title}${transposeA ? ', left side swapped' : ''}${transposeB ? ', right side swapped' : ''}, with and without a factor`,
        () => ({
          inputs: { a: floats(swapped(left, transposeA)), b: floats(swapped(right, transposeB)) },
          outputs: ({ a, b }) => ({
            y: matMul(a!, b!, { transposeA, transposeB }),
            z: matMul(a!, b!, { transposeA, transposeB, alpha: -0.375 }),
          }),
          wrt: ['a', 'b'],
        }),
        { rounds: 1 },
      );
    }
  }

  itComputes('counts both uses of one value', () => ({
    inputs: { a: floats(['B', 2, 2]) },
    outputs: ({ a }) => ({ y: matMul(a!, a!), gram: matMul(a!, a!, { transposeA: true }) }),
    wrt: ['a'],
  }));

  itRefuses(
    'inner sizes that differ',
    { a: floats([8, 64]), b: floats([32, 16]) },
    ({ a, b }) => matMul(a!, b!, { transposeB: true }),
    ['MatMul', 'inner sizes differ', '[8,64]', '[32,16]', 'transposeB true'],
  );
  itRefuses('one axis', { a: floats([8]), b: floats([8, 2]) }, ({ a, b }) => matMul(a!, b!), [
    'MatMul',
    '[8]',
    '[8,2]',
  ]);
  itRefuses(
    'leading axes that do not broadcast',
    { a: floats([2, 3, 4]), b: floats(['B', 4, 5]) },
    ({ a, b }) => matMul(a!, b!),
    ['MatMul', '[2]', '[B]'],
  );
  itRefuses('ids', { a: ids([2, 2], 3), b: floats([2, 2]) }, ({ a, b }) => matMul(a!, b!), [
    'MatMul',
    'int64',
    '[2,2]',
  ]);
});
