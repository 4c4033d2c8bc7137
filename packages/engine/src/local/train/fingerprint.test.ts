import { describe, expect, it } from 'vitest';
import { weightsFingerprint } from './fingerprint.js';

const array = (name: string, ...values: number[]) => ({ name, values: Float32Array.from(values) });

describe('a fingerprint of weights', () => {
  it('is the same for the same bits, in whatever order the arrays come', () => {
    const arrays = [array('b', 1, 2), array('a', 3)];
    expect(weightsFingerprint(arrays)).toMatch(/^[0-9a-f]{32}$/);
    expect(weightsFingerprint([...arrays].reverse())).toBe(weightsFingerprint(arrays));
    const view = { name: 'a', values: Float32Array.of(9, 3).subarray(1) };
    expect(weightsFingerprint([arrays[0]!, view])).toBe(weightsFingerprint(arrays));
  });

  it.each([
    ['a last bit', [array('a', 1 + 2 ** -23), array('b', 2)]],
    ['the sign of a zero beside it', [array('a', 1), array('b', 2), array('c', -0)]],
    ['a name', [array('a', 1), array('c', 2)]],
    ['where an array ends', [array('a', 1, 2), array('b')]],
    ['an array that is missing', [array('a', 1)]],
  ])('differs with %s', (_, arrays) => {
    const prints = [
      [array('a', 1), array('b', 2)],
      [array('a', 1), array('b', 2), array('c', 0)],
    ].map(weightsFingerprint);
    expect(prints).not.toContain(weightsFingerprint(arrays));
  });
});
