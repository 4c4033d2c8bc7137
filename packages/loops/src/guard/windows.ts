/** What the rules make of the steps before. */
import type { PastMetrics, RememberedMetric } from './history.js';

/** The middle one, of an even number the upper; NaN of none. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** The finite values of a metric, by step. */
export function valuesOf(steps: readonly { readonly metrics: PastMetrics }[], name: RememberedMetric): number[] {
  return steps.flatMap(({ metrics }) => {
    const value = metrics[name];
    return value !== undefined && Number.isFinite(value) ? [value] : [];
  });
}
