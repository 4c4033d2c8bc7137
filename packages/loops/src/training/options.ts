/** Checks of loop options, so that a wrong one is refused before any work. */
import { complaint } from '@loopwright/protocol';

/** @throws `invalid_argument` */
export function wholeNumber(field: string, value: number, min: number): void {
  if (!Number.isInteger(value) || value < min) {
    throw complaint({ field: `options.${field}`, expected: `a whole number from ${min}`, got: String(value) });
  }
}

/** @throws `invalid_argument` */
export function numberWithin(field: string, value: number, { min, max }: { min: number; max: number }): void {
  if (!(value >= min && value <= max)) {
    throw complaint({ field: `options.${field}`, expected: `from ${min} to ${max}`, got: String(value) });
  }
}

/** What a timer takes: longer ones would fire at once. */
const longestTimeoutMs = 2 ** 31 - 1;

/** @throws `invalid_argument` */
export function timeoutWithin(field: string, ms: number): void {
  numberWithin(field, ms, { min: 1, max: longestTimeoutMs });
}

/** @throws `invalid_argument` */
export function finiteNumber(field: string, value: number): void {
  if (!Number.isFinite(value)) {
    throw complaint({ field: `options.${field}`, expected: 'a finite number', got: String(value) });
  }
}

/** Adam refuses 0. @throws `invalid_argument` */
export function learningRateWithin(value: number): void {
  if (!(value > 0 && value <= 0.01)) {
    throw complaint({ field: 'options.learningRate', expected: 'above 0, at most 0.01', got: String(value) });
  }
}
