import { describe, expect, it } from 'vitest';
import { hash, uniform } from './random.js';

const count = 40_000;

/** Sum of (observed − expected)² / expected over `bins` equal bins. */
function chiSquare(values: Iterable<number>, bins: number): number {
  const counts = new Array<number>(bins).fill(0);
  let total = 0;
  for (const value of values) {
    counts[Math.floor(value * bins)]! += 1;
    total++;
  }
  return counts.reduce((sum, observed) => sum + (observed - total / bins) ** 2 / (total / bins), 0);
}

/** Of values that are uniform and independent it is about normal with deviation 1/√n. */
function correlation(pairs: readonly (readonly [number, number])[]): number {
  return (12 * pairs.reduce((sum, [x, y]) => sum + (x - 0.5) * (y - 0.5), 0)) / pairs.length;
}

function* drawn(at: (i: number) => number): Generator<number> {
  for (let i = 0; i < count; i++) yield at(i);
}

describe('uniform', () => {
  it.each([
    ['positions', (i: number) => uniform(7, 3, i)],
    ['sample indices', (i: number) => uniform(7, i, 3)],
    ['seeds', (i: number) => uniform(i, 3, 7)],
    ['large seeds', (i: number) => uniform(i * 2 ** 32, 3, 7)],
    ['all together', (i: number) => uniform(i % 29, Math.floor(i / 29) % 37, Math.floor(i / 1073))],
  ])('is uniform over %s', (_, at) => {
    // 99 degrees of freedom: mean 99, deviation 14; five deviations. The draws are fixed, so this cannot fail by chance.
    expect(chiSquare(drawn(at), 100)).toBeLessThan(170);
    for (const value of drawn(at)) if (!(value >= 0 && value < 1)) throw new Error(`${value} is out of range`);
  });

  it.each([
    ['position', (i: number, next: number) => uniform(11, i % 200, Math.floor(i / 200) + next)],
    ['sample index', (i: number, next: number) => uniform(11, (i % 200) + next, Math.floor(i / 200))],
    ['seed', (i: number, next: number) => uniform(i + next, 1, 2)],
    ['upper half of the seed', (i: number, next: number) => uniform(i + next * 2 ** 32, 1, 2)],
  ])('of a %s has nothing to do with that of the next', (_, at) => {
    const pairs = Array.from({ length: count }, (__, i) => [at(i, 0), at(i, 1)] as const);
    expect(Math.abs(correlation(pairs))).toBeLessThan(5 / Math.sqrt(count));
    // Pairs fill the square evenly: 8 × 8 fields, 63 degrees of freedom.
    const fields = pairs.map(([x, y]) => (Math.floor(x * 8) * 8 + Math.floor(y * 8)) / 64);
    expect(chiSquare(fields, 64)).toBeLessThan(63 + 5 * Math.sqrt(126));
  });

  it('does not take (index, position) for (position, index), nor their sum', () => {
    const swapped = Array.from({ length: count }, (_, i) => {
      const [a, b] = [i % 200, Math.floor(i / 200) + 300];
      return [uniform(5, a, b), uniform(5, b, a)] as const;
    });
    expect(Math.abs(correlation(swapped))).toBeLessThan(5 / Math.sqrt(count));
    expect(uniform(5, 1, 2)).not.toBe(uniform(5, 2, 1));
    expect(uniform(5, 1, 2)).not.toBe(uniform(5, 0, 3));
  });
});

describe('hash', () => {
  it('gives the same 32 bits for the same place, always', () => {
    expect([hash(0, 0, 0), hash(1, 2, 3), hash(2 ** 52, 999, 131_071)]).toMatchInlineSnapshot(`
      [
        2211862369,
        2598440036,
        2847630003,
      ]
    `);
  });

  it('uses every bit of a seed of 53 bits', () => {
    const seed = 0x1234_5678_9abc;
    const seen = new Set([hash(seed, 1, 1)]);
    for (let bit = 0; bit < 53; bit++) seen.add(hash(Number(BigInt(seed) ^ (1n << BigInt(bit))), 1, 1));
    expect(seen.size).toBe(54);
  });

  it('takes negative seeds as others', () => {
    expect(hash(-1, 0, 0)).not.toBe(hash(1, 0, 0));
    expect(hash(-(2 ** 40), 0, 0)).not.toBe(hash(2 ** 40, 0, 0));
  });
});
