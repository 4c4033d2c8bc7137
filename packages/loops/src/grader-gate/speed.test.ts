import { describe, expect, it } from 'vitest';
import { graderSpeed } from './speed.js';

/** Twenty calls of 100 ms, and a hundred by 16 at once in `ms`; a step of 64 calls whose rest takes `stepSeconds`. */
const speedOf = (ms: number, stepSeconds: number, concurrency = 16) =>
  graderSpeed({
    aloneMs: Array(20).fill(100),
    together: { calls: 100, ms, concurrency },
    callsPerStep: 64,
    stepSeconds,
  });

describe('the calls at once that a step needs', () => {
  it.each([
    // 6.4 s one after another: a rest of 9 s leaves 1 s for it, one of 28.8 s 3.2 s.
    ['as many as times faster where calls cost nothing to each other', 10_000 / 16, 9, 7],
    ['more where they slow each other down: 8 times as fast with 16', 10_000 / 8, 9, 11],
    ['one where one after another is fast enough', 10_000, 60, 1],
    ['none where they wait for one another', 10_000, 9, undefined],
    ['none where a pool of 4 is busy: 4 times as fast with 16', 10_000 / 4, 9, undefined],
    ['few where that pool is enough', 10_000 / 4, 28.8, 3],
    ['none where a step has not as many', 10_000 / 16, 0.5, undefined],
    ['none where only one ran at a time', 10_000, 9, undefined, 1],
  ] as const)('are %s', (_, ms, stepSeconds, needed, concurrency?: number) => {
    const { parallelism } = speedOf(ms, stepSeconds, concurrency);
    expect(parallelism?.needed).toBe(needed);
    expect(parallelism?.neededSpeedUp).toBeCloseTo((6.4 * 9) / stepSeconds);
  });

  it('come from the overlap: nothing is as fast as more calls than there were, or slower than one', () => {
    const overlap = (ms: number, concurrency?: number) => speedOf(ms, 9, concurrency).together?.overlap;
    expect(overlap(10_000 / 4)).toEqual({ speedUp: 4, serialShare: expect.closeTo(0.2), isSerial: false });
    expect(overlap(9_000)).toMatchObject({ isSerial: true });
    expect(overlap(10)).toEqual({ speedUp: 16, serialShare: 0, isSerial: false });
    expect(overlap(20_000)).toEqual({ speedUp: 0.5, serialShare: 1, isSerial: true });
    expect(overlap(10_000, 1)).toBeUndefined();
  });

  it('take no notice of what the first call had to load', () => {
    const aloneMs = [5000, ...Array(19).fill(100)];
    const { together } = graderSpeed({
      aloneMs,
      together: { calls: 100, ms: 10_000, concurrency: 16 },
      callsPerStep: 64,
    });
    expect(together?.overlap).toMatchObject({ speedUp: 1, isSerial: true });
  });
});
