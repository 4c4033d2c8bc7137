import { expect, it } from 'vitest';
import { ticksOf } from './scale.js';

const texts = (least: number, most: number) => ticksOf(least, most).map(({ text }) => text);

it('ticks are round numbers around the values', () => {
  expect(texts(0.31, 0.69)).toEqual(['0.2', '0.4', '0.6', '0.8']);
  expect(texts(0, 17_200)).toEqual(['0', '5k', '10k', '15k', '20k']);
  expect(texts(-0.24, -0.08)).toEqual(['-0.25', '-0.20', '-0.15', '-0.10', '-0.05']);
  expect(texts(0, 0.00003)).toEqual(['0', '1e-5', '2e-5', '3e-5']);
});

it('values that differ by rounding alone lie on a flat line', () => {
  const ticks = ticksOf(0.9999962, 1.0000021);
  expect(ticks.at(-1)!.value - ticks[0]!.value).toBeGreaterThan(5e-5);
  expect(texts(1, 1)).toEqual(expect.arrayContaining(['1.00000']));
});

it('every tick has its own text, which fits beside the curve', () => {
  const ranges = [
    [0.99, 1.01],
    [0.9999962, 1.0000021],
    [123456, 123460],
    [1_234_000, 1_290_000],
    [-3e-7, 2e-6],
    [0.00021, 0.00022],
    [-5, 12_000_000_000],
  ] as const;
  for (const [least, most] of ranges) {
    const shown = texts(least, most);
    expect(new Set(shown).size, shown.join(' ')).toBe(shown.length);
    expect(Math.max(...shown.map(({ length }) => length)), shown.join(' ')).toBeLessThanOrEqual(8);
    expect(shown.length).toBeGreaterThanOrEqual(3);
    expect(shown.length).toBeLessThanOrEqual(6);
  }
});
