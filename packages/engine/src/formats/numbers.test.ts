import { describe, expect, it } from 'vitest';
import { firstNonFinite, widenBfloat16, widenFloat16 } from './numbers.js';

/** The definition of IEEE half precision, in plain arithmetic. */
function half(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return exponent === 0 ? sign * fraction * 2 ** -24 : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

describe('widening', () => {
  it('turns each of the 65,536 half-precision values into the same number', () => {
    const source = Uint16Array.from({ length: 65_536 }, (_, i) => i);
    const target = new Float32Array(source.length);
    widenFloat16(source, target);
    for (let i = 0; i < source.length; i++) {
      if (!Object.is(target[i], half(i))) expect.fail(`bits ${i}: ${target[i]} for ${half(i)}`);
    }
  });

  it('turns bfloat16 into the float32 with the same upper bits', () => {
    const target = new Float32Array(4);
    widenBfloat16(new Uint16Array([0x3f80, 0xc049, 0x0001, 0x8000]), target);
    expect([...target]).toEqual([1, -3.140625, 2 ** -133, -0]);
  });

  it('finds the first NaN or infinity and nothing in finite values', () => {
    expect(firstNonFinite(new Float32Array([0, -0, 3e38, 1e-45]))).toBe(-1);
    expect(firstNonFinite(new Float32Array([1, Number.NEGATIVE_INFINITY, Number.NaN]))).toBe(1);
    expect(firstNonFinite(new Float32Array([Number.NaN]))).toBe(0);
  });
});
