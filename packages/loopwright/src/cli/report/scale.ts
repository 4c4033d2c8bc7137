/** The axis of a curve: round numbers around its values, and how they are written. */

export interface Tick {
  readonly value: number;
  readonly text: string;
}

/** Values closer together than this share of their size are rounding, and are drawn as the flat line that they are. */
const leastSpan = 1e-4;

/** Three to six round numbers around all values, each with a text of its own of at most eight characters. */
export function ticksOf(least: number, most: number): Tick[] {
  const size = Math.max(Math.abs(least), Math.abs(most)) || 1;
  const missing = Math.max(0, leastSpan * size - (most - least));
  const [low, high] = [least - missing / 2, most + missing / 2];
  const rough = (high - low) / 3;
  const power = 10 ** Math.floor(Math.log10(rough));
  const unit = power * ([1, 2, 5].find((factor) => factor * power >= rough * 0.8) ?? 10);
  const start = Math.floor(low / unit + 1e-9);
  const end = Math.ceil(high / unit - 1e-9);
  return Array.from({ length: end - start + 1 }, (_, i) => {
    const value = (start + i) * unit;
    return { value, text: tickText(value, { unit, size }) };
  });
}

/** As many digits as tell it from its neighbours. */
function tickText(value: number, { unit, size }: { readonly unit: number; readonly size: number }): string {
  if (value === 0) return '0';
  for (const [least, suffix] of suffixes) {
    if (size >= least * 10) return `${fixed(value / least, unit / least)}${suffix}`;
  }
  return size < 1e-3
    ? value.toExponential(digits(unit / 10 ** Math.floor(Math.log10(Math.abs(value)))))
    : fixed(value, unit);
}

const suffixes = [
  [1e9, 'G'],
  [1e6, 'M'],
  [1e3, 'k'],
] as const;

function fixed(value: number, unit: number): string {
  return value.toFixed(digits(unit));
}

/** Decimals down to the first digit of the unit. */
function digits(unit: number): number {
  return Math.min(20, Math.max(0, -Math.floor(Math.log10(unit) + 1e-9)));
}
