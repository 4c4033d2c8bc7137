/** Comparison of numbers with a reference; what differs is said with place, values and bound. */
import type { Tolerance } from './tolerances.js';

type Numbers = ArrayLike<number>;

export interface CompareOptions {
  /** What is compared, for the message. */
  readonly label?: string;
  /** For a `sum` tolerance: the sum of the magnitudes of what was summed. */
  readonly magnitude?: number;
}

/**
 * Throws unless `actual` is within the tolerance of `expected`. NaN is close to nothing, not even to NaN.
 *
 * @param actual a number or an array; an array must have the length of `expected`
 */
export function expectClose(
  actual: number | Numbers,
  expected: number | Numbers,
  tolerance: Tolerance,
  { label = 'value', magnitude }: CompareOptions = {},
): void {
  const a = typeof actual === 'number' ? [actual] : actual;
  const e = typeof expected === 'number' ? [expected] : expected;
  if (a.length !== e.length) throw new Error(`${label}: ${a.length} values, expected ${e.length}`);
  const bound = elementBound(e, tolerance, { label, ...(magnitude === undefined ? {} : { magnitude }) });
  let sum = 0;
  let squares = 0;
  for (let i = 0; i < e.length; i++) {
    const difference = Math.abs(a[i]! - e[i]!);
    const allowed = bound(e[i]!);
    if (!(difference <= allowed)) {
      const place = e.length === 1 ? '' : ` [${i}] of ${e.length}`;
      throw new Error(
        `${label}${place}: ${a[i]}, expected ${e[i]}: off by ${difference}, allowed ${allowed} (${tolerance.reason})`,
      );
    }
    sum += difference;
    squares += difference ** 2;
  }
  if (tolerance.kind === 'elements' && tolerance.mean !== undefined && sum > tolerance.mean * e.length) {
    throw new Error(`${label}: mean error ${sum / e.length}, allowed ${tolerance.mean} (${tolerance.reason})`);
  }
  if (tolerance.kind === 'tensor' && tolerance.l2 !== undefined) {
    const allowed = tolerance.l2 * norm(e);
    if (Math.sqrt(squares) > allowed) {
      throw new Error(`${label}: error norm ${Math.sqrt(squares)}, allowed ${allowed} (${tolerance.reason})`);
    }
  }
}

/** Throws unless two arrays have the same kind, length and bits (so NaN equals itself, and 0 differs from −0). Fast for large ones. */
export function expectSameBits(actual: ArrayBufferView, expected: ArrayBufferView, label = 'array'): void {
  if (actual.constructor !== expected.constructor || actual.byteLength !== expected.byteLength) {
    const show = ({ constructor: { name }, byteLength }: ArrayBufferView) => `${name} of ${byteLength} bytes`;
    throw new Error(`${label}: ${show(actual)}, expected ${show(expected)}`);
  }
  const bytes = (view: ArrayBufferView) => Buffer.from(view.buffer, view.byteOffset, view.byteLength);
  const [a, e] = [bytes(actual), bytes(expected)];
  if (!a.equals(e)) throw new Error(`${label}: differs first at byte ${a.findIndex((byte, i) => byte !== e[i])}`);
}

/** ‖values‖₂ in float64. */
export function norm(values: Numbers): number {
  let squares = 0;
  for (let i = 0; i < values.length; i++) squares += values[i]! ** 2;
  return Math.sqrt(squares);
}

function elementBound(
  expected: Numbers,
  tolerance: Tolerance,
  { label, magnitude }: { label: string; magnitude?: number },
): (value: number) => number {
  switch (tolerance.kind) {
    case 'elements':
      return (value) => tolerance.abs + tolerance.rel * Math.abs(value);
    case 'tensor': {
      let max = 0;
      for (let i = 0; i < expected.length; i++) max = Math.max(max, Math.abs(expected[i]!));
      return () => tolerance.max * max;
    }
    case 'sum':
      if (magnitude === undefined) throw new Error(`${label}: this tolerance needs a magnitude`);
      return () => tolerance.rel * magnitude;
    default:
      return tolerance satisfies never;
  }
}
