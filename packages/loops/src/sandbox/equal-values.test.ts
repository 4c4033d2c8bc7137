import { expect, test } from 'vitest';
import { equalValues } from './equal-values.js';
import type { SandboxValue } from './values.js';

const same: readonly (readonly [SandboxValue, SandboxValue])[] = [
  [1, 1],
  [2n ** 60n, 2 ** 60],
  [2 ** 60, 2n ** 60n],
  [Number.NaN, Number.NaN],
  [0.3, 0.1 + 0.2],
  [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
  [0, -0],
  [
    [1, [2]],
    [1, [2]],
  ],
  [new Set([1, 2.5]), new Set([2.5, 1])],
  [new Set([[1, 2]]), new Set([[1, 2]])],
  [
    { a: 1, b: null },
    { b: null, a: 1 },
  ],
  [{ 1: 'x' }, new Map([[1, 'x']])],
  [new Map([['a', 1]]), { a: 1 }],
  [new Map([[[1], 2]]), new Map([[[1], 2]])],
  [Object.fromEntries([['__proto__', 1]]), Object.fromEntries([['__proto__', 1]])],
  [Uint8Array.of(1), Uint8Array.of(1)],
];
const different: readonly (readonly [SandboxValue, SandboxValue])[] = [
  [1, true],
  [1, '1'],
  [0, null],
  [2n ** 60n, 2n ** 60n + 1n],
  [10 ** 15, 10 ** 15 + 1],
  [0.5, 0.5001],
  [1n, 1.5],
  [Number.NaN, 0],
  [1, Number.POSITIVE_INFINITY],
  [0.5, Number.POSITIVE_INFINITY],
  [[1], { 0: 1 }],
  [{ 0: 1 }, [1]],
  [[], new Set()],
  [{}, []],
  [[], null],
  [new Set([1]), new Set([1, 2])],
  [{ a: 1 }, Object.fromEntries([['__proto__', 1]])],
  [{ toString: 1 }, {}],
  [new Map<SandboxValue, SandboxValue>([[1, 'a']]), new Map<SandboxValue, SandboxValue>([[1, 'b']])],
  [
    { '1': 'b' },
    new Map<SandboxValue, SandboxValue>([
      [1, 'a'],
      ['1', 'b'],
    ]),
  ],
  [Uint8Array.of(1), [1]],
];

test.each(same)('%o is expected and got as %o', (expected, got) => {
  expect(equalValues(expected, got)).toBe(true);
});
test.each(different)('%o is not got as %o', (expected, got) => {
  expect(equalValues(expected, got)).toBe(false);
});

test('large sets are compared in no time, also when they are different in every member', () => {
  const expected = new Set(Array.from({ length: 200_000 }, (_, i) => i));
  expect(equalValues(expected, new Set([...expected].reverse()))).toBe(true);
  expect(equalValues(expected, new Set(Array.from({ length: 200_000 }, (_, i) => -1 - i)))).toBe(false);
});
