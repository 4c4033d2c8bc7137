/** A curve of several rows, in eighths of a character. */

export interface AreaChartOptions {
  readonly columns: number;
  readonly rows: number;
  readonly low: number;
  readonly high: number;
}

const eighths = ' ▁▂▃▄▅▆▇█';

/** The whole curve, from the first value to the last: where there are more than columns, means of neighbours. Rows from the top. */
export function areaChart(values: readonly number[], { columns, rows, low, high }: AreaChartOptions): string[] {
  const span = high - low || 1;
  const heights = binned(values, columns).map((value) => {
    const share = Math.min(1, Math.max(0, (value - low) / span));
    return Math.max(1, Math.round(share * rows * 8)); // what was measured is seen, also at the bottom
  });
  return Array.from({ length: rows }, (_, row) => {
    const below = (rows - 1 - row) * 8;
    return heights.map((height) => eighths.charAt(Math.min(8, Math.max(0, height - below)))).join('');
  });
}

function binned(values: readonly number[], columns: number): number[] {
  if (values.length <= columns) return [...values];
  return Array.from({ length: columns }, (_, i) => {
    const bin = values.slice(
      Math.floor((i * values.length) / columns),
      Math.floor(((i + 1) * values.length) / columns),
    );
    return bin.reduce((sum, value) => sum + value, 0) / bin.length;
  });
}
