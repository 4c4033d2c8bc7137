/** What the rules make of the steps before. */

/** The middle one, of an even number the upper; NaN of none. */
export function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** The finite values of a metric, by step. */
export function valuesOf(
  steps: readonly { readonly metrics: Readonly<Record<string, number>> }[],
  name: string,
): number[] {
  return steps.flatMap(({ metrics }) => {
    const value = metrics[name];
    return value !== undefined && Number.isFinite(value) ? [value] : [];
  });
}
