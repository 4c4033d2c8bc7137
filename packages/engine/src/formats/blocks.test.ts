import { describe, expect, it } from 'vitest';
import { blockArrays } from './blocks.js';

describe('arrays in blocks', () => {
  it('have their lengths, share a block, and never a value', () => {
    const arrays = blockArrays([3, 0, 17, 16, 1]);
    expect(arrays.map(({ length }) => length)).toEqual([3, 0, 17, 16, 1]);
    expect(new Set(arrays.map(({ buffer }) => buffer)).size).toBe(1);
    for (const [i, array] of arrays.entries()) array.fill(i + 1);
    for (const [i, array] of arrays.entries())
      expect(new Set(array)).toEqual(new Set(array.length === 0 ? [] : [i + 1]));
    expect(arrays.every(({ byteOffset }) => byteOffset % 64 === 0)).toBe(true);
  });

  it('begin another block where one would get too large', () => {
    const quarter = 20 * 1024 * 1024;
    const arrays = blockArrays([quarter, quarter, quarter, quarter]);
    expect(new Set(arrays.map(({ buffer }) => buffer)).size).toBe(2);
  });
});
