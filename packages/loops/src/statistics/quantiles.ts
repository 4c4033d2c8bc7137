/** How values are spread. */
import type { Metrics } from '../training/grpo-metrics.js';

/**
 * Quantiles by linear interpolation between the two nearest values.
 *
 * @param values in any order, finite
 * @param shares each from 0 to 1
 * @returns one for each share; NaN of no values
 * @see Hyndman and Fan 1996, doi:10.1080/00031305.1996.10473566, definition 7, as NumPy's default
 */
export function quantiles(values: readonly number[], shares: readonly number[]): number[] {
  const sorted = Float64Array.from(values).sort();
  return shares.map((share) => {
    const at = share * (sorted.length - 1);
    const low = sorted[Math.floor(at)] ?? Number.NaN;
    const high = sorted[Math.ceil(at)] ?? Number.NaN;
    return low + (high - low) * (at - Math.floor(at));
  });
}

/** As metrics: `<name>/p05`, `<name>/p50` and `<name>/p95`, or with `<name>_p05` where the name has its group already. */
export function spreadMetrics(name: string, values: readonly number[]): Metrics {
  const [p05, p50, p95] = quantiles(values, [0.05, 0.5, 0.95]);
  const join = name.includes('/') ? '_' : '/';
  return { [`${name}${join}p05`]: p05!, [`${name}${join}p50`]: p50!, [`${name}${join}p95`]: p95! }; // true: one for each share
}
