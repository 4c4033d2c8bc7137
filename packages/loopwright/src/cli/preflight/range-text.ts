/** A forecast for people. */
import type { Forecast } from '@loopwright/loops';

/** `120 (60 to 240)`. */
export function rangeText({ expected, low, high }: Forecast, text: (value: number) => string): string {
  return `${text(expected)} (${text(low)} to ${text(high)})`;
}
