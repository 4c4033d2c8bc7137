import { describe, expect, it } from 'vitest';
import { broadcast, canonical, dim, normalizeAxes, product, sameShape, staticDim } from './shape.js';

describe('shapes', () => {
  it('write products of sizes in one way, whatever the order', () => {
    expect(product(['S', 2, 'B', 3])).toBe('6*B*S');
    expect(product(['S*2', 'B*3'])).toBe('6*B*S');
    expect(product([2, 3])).toBe(6);
    expect(product(['B', 0])).toBe(0);
    expect(product([])).toBe(1);
    expect(canonical(['S*B', '4', 'T+1', 2])).toEqual(['B*S', 4, 'T+1', 2]);
  });

  it('broadcast from the end, 1 stretches', () => {
    expect(broadcast('Add', ['B', 1, 3], ['S', 1])).toEqual(['B', 'S', 3]);
    expect(broadcast('Add', [], ['B'])).toEqual(['B']);
    expect(() => broadcast('Add', ['B'], ['S'])).toThrow('Add: shapes [B] and [S] do not broadcast');
  });

  it('are read from either end, with an error where there is nothing', () => {
    expect(dim(['B', 3], -1)).toBe(3);
    expect(() => dim(['B', 3], 2)).toThrow('shape [B,3] has no axis 2');
    expect(() => dim(['B', 3], -3)).toThrow('has no axis -3');
    expect(() => staticDim(['B', 3], 0)).toThrow('axis 0 of [B,3] must have a fixed size');
    expect(normalizeAxes([-1, 0], 3)).toEqual([0, 2]);
    expect(sameShape(['B', 2], ['B', 2, 1])).toBe(false);
  });
});
