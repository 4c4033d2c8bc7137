/** Comparison of arrays with the tolerances of this package and the reason of each. */
import { expect } from 'vitest';
import type { Tensor } from './tensor.js';

export const tolerance = {
  /** One operation in float32 against float64: rounding (6e-8) times the few additions of a small row. */
  float32: 1e-5,
  /** A chain of operations in float32: each step passes on the error of the last. */
  float32Chain: 1e-4,
  /** Central differences with step 1e-5 err by 1e-10; constants of the graph are rounded to float32, which adds up to 6e-8. */
  finiteDifference: 1e-6,
  /** float64 in another order of operations. */
  float64: 1e-12,
} as const;

/** The largest |actual − expected| / max(1, |expected|, scale); infinite where only one is a number. */
function largestError(actual: Tensor, expected: Tensor, scale: number): number {
  return expected.data.reduce((largest, want, i) => {
    const got = actual.data[i]!;
    if (Object.is(got, want) || got === want) return largest;
    const error = Math.abs(got - want) / Math.max(1, Math.abs(want), scale);
    return Math.max(largest, Number.isNaN(error) ? Number.POSITIVE_INFINITY : error);
  }, 0);
}

export interface CloseOptions {
  /** Relative to the expected number, or to 1 where it is smaller. */
  readonly within: number;
  readonly what: string;
  /** Whether the error counts relative to the largest number of the whole array. */
  readonly byLargest?: boolean;
}

export function expectClose(actual: Tensor | undefined, expected: Tensor | undefined, options: CloseOptions): void {
  const { within, what, byLargest = false } = options;
  if (actual === undefined || expected === undefined) throw new Error(`${what}: there is no such result`);
  expect({ what, dtype: actual.dtype, shape: actual.shape }).toEqual({
    what,
    dtype: expected.dtype,
    shape: expected.shape,
  });
  const scale = byLargest ? expected.data.reduce((a, b) => Math.max(a, Math.abs(b)), 0) : 0;
  const largest = largestError(actual, expected, scale);
  if (largest > within) {
    throw new Error(
      `${what}: off by ${largest}\n got      ${actual.data.slice(0, 24)}\n expected ${expected.data.slice(0, 24)}`,
    );
  }
}
