import { describe, expect, it } from 'vitest';
import { createRandom } from '../random.js';
import { comparePairs } from './paired.js';

/** [both right, gained, lost, neither] as pairs. */
function pairs(both: number, gained: number, lost: number, neither: number) {
  const of = (count: number, value: number) => new Array<number>(count).fill(value);
  const start = [...of(both, 1), ...of(gained, 0), ...of(lost, 1), ...of(neither, 0)];
  const candidate = [...of(both, 1), ...of(gained, 1), ...of(lost, 0), ...of(neither, 0)];
  return [start, candidate] as const;
}

describe('a paired comparison', () => {
  it('of right and wrong has the interval of Newcombe’s method 10, as his table III gives it', () => {
    const { difference, interval, method, outcome } = comparePairs(...pairs(36, 12, 2, 0));
    expect([difference, method, outcome]).toEqual([expect.closeTo(0.2, 12), 'newcombe', 'better']);
    expect(interval.low).toBeCloseTo(0.0569, 4);
    expect(interval.high).toBeCloseTo(0.3404, 4);
  });

  it('is not certain where no pair differs', () => {
    const { interval, outcome, neededPairs } = comparePairs(...pairs(20, 0, 0, 30));
    expect(outcome).toBe('not-distinguishable');
    expect(interval.low).toBeLessThan(-0.01);
    expect(interval.high).toBeGreaterThan(0.01);
    expect(neededPairs).toBeUndefined();
  });

  it('turns around when the two are exchanged', () => {
    const [start, candidate] = pairs(10, 3, 15, 22);
    const [one, other] = [comparePairs(start, candidate), comparePairs(candidate, start)];
    expect([one.outcome, other.outcome]).toEqual(['worse', 'better']);
    expect(other.interval.low).toBeCloseTo(-one.interval.high, 12);
  });

  it('of rewards has Student’s interval', () => {
    // n = 5, mean 1, standard deviation √2.5; t(4) = 2.7764
    const { interval, method } = comparePairs([0, 0, 0, 0, 0], [-1, 0, 1, 2, 3]);
    expect(method).toBe('student');
    expect(interval.high - 1).toBeCloseTo((2.7764 * Math.sqrt(2.5)) / Math.sqrt(5), 2);
  });

  it.each([
    [2, 12.7062],
    [3, 4.3027],
    [4, 3.1824],
  ])('of %i pairs has Student’s own point, %f, where the series is too small', (n, point) => {
    const candidate = Array.from({ length: n }, (_, i) => 2 * i);
    const mean = n - 1;
    const deviation = Math.sqrt(candidate.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (n - 1));
    const { interval } = comparePairs(new Array(n).fill(0), candidate);
    expect(((interval.high - mean) * Math.sqrt(n)) / deviation).toBeCloseTo(point, 3);
  });

  it('of a few pairs that differ by the very same is not certain', () => {
    const of = (n: number) => comparePairs(new Array(n).fill(0), new Array(n).fill(2));
    expect([of(2), of(5), of(6)].map(({ outcome }) => outcome)).toEqual([
      'not-distinguishable',
      'not-distinguishable',
      'better',
    ]);
  });

  it('says how many pairs would settle a difference, and these do in four of five comparisons', () => {
    const first = comparePairs(...pairs(30, 12, 8, 50));
    expect(first.outcome).toBe('not-distinguishable');
    // ((1.96 + 0.842) · s / 0.04)², s² = (20 − 100 · 0.04²) / 99
    expect(first.neededPairs).toBe(Math.ceil((2.801585 * Math.sqrt((20 - 0.16) / 99)) ** 2 / 0.04 ** 2));
    const random = createRandom(1);
    const settled = Array.from({ length: 400 }, () => {
      const counts = [0, 0, 0, 0];
      for (let i = 0; i < first.neededPairs!; i++) {
        const u = random.next();
        const kind = u < 0.3 ? 0 : u < 0.42 ? 1 : u < 0.5 ? 2 : 3;
        counts[kind] = counts[kind]! + 1;
      }
      const [both = 0, gained = 0, lost = 0, neither = 0] = counts;
      return comparePairs(...pairs(both, gained, lost, neither)).outcome === 'better';
    }).filter(Boolean).length;
    expect(settled / 400).toBeGreaterThan(0.73);
    expect(settled / 400).toBeLessThan(0.87);
  });

  it('covers the true difference nineteen times of twenty', () => {
    const random = createRandom(2);
    let covered = 0;
    const trials = 2000;
    for (let i = 0; i < trials; i++) {
      const start: number[] = [];
      const candidate: number[] = [];
      for (let j = 0; j < 60; j++) {
        const hard = random.next() < 0.4 ? 0.15 : 0.8;
        start.push(random.next() < hard ? 1 : 0);
        candidate.push(random.next() < hard + 0.1 ? 1 : 0);
      }
      const { interval } = comparePairs(start, candidate);
      if (interval.low <= 0.1 && 0.1 <= interval.high) covered += 1;
    }
    expect(covered / trials).toBeGreaterThan(0.93);
    expect(covered / trials).toBeLessThan(0.985);
  });

  it('refuses what are no pairs', () => {
    expect(() => comparePairs([1, 0], [1])).toThrow('pairs');
    expect(() => comparePairs([1], [1])).toThrow('pairs');
    expect(() => comparePairs([1, Number.NaN], [1, 0])).toThrow('finite');
  });
});
