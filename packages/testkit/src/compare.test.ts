import { describe, expect, it } from 'vitest';
import { expectClose, expectSameBits } from './compare.js';
import { tolerances } from './tolerances.js';

const elements = { kind: 'elements', abs: 0.1, rel: 0.01, reason: 'a test' } as const;
const tensor = { kind: 'tensor', max: 0.1, l2: 0.05, reason: 'a test' } as const;

describe('expectClose', () => {
  it('bounds each value by abs plus rel of the expected one', () => {
    expectClose([1.1, 100, -101], [1, 101, -100], elements);
    expect(() => expectClose([1, 98.8], [1, 100], elements, { label: 'x' })).toThrow(
      /^x \[1\] of 2: 98.8, expected 100/,
    );
    expect(() => expectClose(1.2, 1, elements)).toThrow(/a test/);
  });

  it('bounds the mean where one is given', () => {
    const mean = { ...elements, mean: 0.05 };
    expectClose([1.1, 1, 1], [1, 1, 1], mean);
    expect(() => expectClose([1.1, 1.1, 1], [1, 1, 1], mean)).toThrow(/mean error/);
  });

  it('bounds a tensor by its largest value and by its norm', () => {
    expectClose([10, 0.4], [10, 0], tensor);
    expect(() => expectClose([10, 1.1], [10, 0], tensor)).toThrow(/\[1\]/);
    expect(() => expectClose([10.9, 10.9], [10, 10], { ...tensor, l2: 0.05 })).toThrow(/error norm/);
  });

  it('bounds a sum by the magnitude of its terms', () => {
    const sum = { kind: 'sum', rel: 0.01, reason: 'a test' } as const;
    expectClose(0.5, 0, sum, { magnitude: 100 });
    expect(() => expectClose(2, 0, sum, { magnitude: 100 })).toThrow(/off by 2/);
    expect(() => expectClose(0, 0, sum)).toThrow(/magnitude/);
  });

  it('takes NaN for close to nothing, and arrays of other lengths neither', () => {
    expect(() => expectClose(Number.NaN, Number.NaN, elements)).toThrow();
    expect(() => expectClose(Number.NaN, 1, tensor)).toThrow();
    expect(() => expectClose([1], [1, 1], elements)).toThrow(/1 values, expected 2/);
  });

  it('would notice the smallest known mistake in a model', () => {
    expect(() => expectClose(-5.0008, -5, tolerances.tinyLogprobs)).toThrow();
  });
});

describe('expectSameBits', () => {
  it('tells apart what == does not, and equates NaN with itself', () => {
    expectSameBits(new Float32Array([Number.NaN, 1]), new Float32Array([Number.NaN, 1]));
    expect(() => expectSameBits(new Float32Array([0]), new Float32Array([-0]))).toThrow(/byte 3/);
    expect(() => expectSameBits(new Float32Array(1), new Int32Array(1))).toThrow(/Int32Array/);
    expect(() => expectSameBits(new Float32Array(1), new Float32Array(2))).toThrow(/8 bytes/);
  });
});
