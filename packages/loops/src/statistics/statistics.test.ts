import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createRandom } from '../random.js';
import { centerRewards, leaveOneOutRewards, normalizeRewards } from './advantages.js';
import { wilsonInterval } from './intervals.js';
import { klK1, klK2, klK3 } from './kl.js';

function readStats<T>(name: string): T {
  const path = fileURLToPath(new URL(`../../../testkit/fixtures/stats/${name}.json`, import.meta.url));
  return JSON.parse(readFileSync(path, 'utf8')) as T; // our own files
}

function expectNear(got: readonly number[], wanted: readonly number[], tolerance: number): void {
  expect(got).toHaveLength(wanted.length);
  for (const [i, value] of got.entries()) {
    expect(Math.abs(value - (wanted[i] ?? Number.NaN)), `position ${i}`).toBeLessThanOrEqual(tolerance);
  }
}

interface Group {
  readonly name: string;
  readonly rewards: number[];
  readonly centered: number[];
  readonly normalized: number[];
  readonly rloo: number[] | null;
}

describe('advantages', () => {
  const { groups } = readStats<{ group: { groups: Group[] } }>('advantages').group;

  it.each(groups)('of $name equal the reference to 1e-12', ({ rewards, centered, normalized, rloo }) => {
    const equal = new Set(rewards).size === 1;
    const zeros = rewards.map(() => 0);
    expectNear(centerRewards([rewards])[0] ?? [], equal ? zeros : centered, 1e-12);
    expectNear(normalizeRewards([rewards])[0] ?? [], equal ? zeros : normalized, 1e-12);
    expectNear(leaveOneOutRewards([rewards])[0] ?? [], equal || rloo === null ? zeros : rloo, 1e-12);
  });

  it('of equal rewards are exactly 0', () => {
    for (const advantages of [centerRewards, normalizeRewards, leaveOneOutRewards]) {
      expect(advantages([[0.1, 0.1, 0.1], [1, 1], [0.7]])).toEqual([[0, 0, 0], [0, 0], [0]]);
    }
  });

  it('are refused for empty groups and rewards that are not finite', () => {
    for (const advantages of [centerRewards, normalizeRewards, leaveOneOutRewards]) {
      expect(() => advantages([[1], []])).toThrow('rewards[1]: expected at least one reward');
      expect(() => advantages([[1, Number.NaN]])).toThrow('rewards[0][1]: expected a finite number, got NaN');
    }
  });
});

describe('KL estimates', () => {
  interface Kl {
    readonly logprobs: number[];
    readonly ref_logprobs: number[];
    readonly k1: number[];
    readonly k2: number[];
    readonly k3: number[];
    readonly exact: { readonly p: number[]; readonly q: number[]; readonly kl_p_q: number };
  }
  const kl = readStats<Kl>('kl');

  it('equal the reference', () => {
    expectNear(klK1(kl.logprobs, kl.ref_logprobs), kl.k1, 1e-14);
    expectNear(klK2(kl.logprobs, kl.ref_logprobs), kl.k2, 1e-13);
    expectNear(klK3(kl.logprobs, kl.ref_logprobs), kl.k3, 1e-13);
  });

  it('of k3 keep their digits near 0', () => {
    for (const d of [1e-7, 1e-5, 9.9e-4, 1.01e-3, -1e-6, -1.01e-3]) {
      const exact = (d * d) / 2 - d ** 3 / 6 + d ** 4 / 24 - d ** 5 / 120;
      expect(Math.abs((klK3([d], [0])[0] ?? 0) / exact - 1)).toBeLessThan(1e-9);
    }
  });

  it('have the expected means under the policy', () => {
    const { p, q, kl_p_q: exact } = kl.exact;
    const log = (values: number[]): number[] => values.map(Math.log);
    for (const estimate of [klK1, klK3]) {
      const values = estimate(log(p), log(q));
      expect(values.reduce((sum, value, i) => sum + value * (p[i] ?? 0), 0)).toBeCloseTo(exact, 12);
    }
  });

  it('refuse lists of different lengths', () => {
    expect(() => klK3([0, 0], [0])).toThrow('referenceLogprobs: expected 2 numbers');
  });
});

describe('the Wilson interval', () => {
  const { rows } = readStats<{ wilson: { rows: { k: number; n: number; low: number; high: number }[] } }>(
    'intervals',
  ).wilson;

  it.each(rows)('of $k in $n equals the reference', ({ k, n, low, high }) => {
    const interval = wilsonInterval(k, n);
    expectNear([interval.low, interval.high], [low, high], 1e-12);
  });

  it('refuses numbers that are no counts', () => {
    expect(() => wilsonInterval(1, 0)).toThrow('trials');
    expect(() => wilsonInterval(3, 2)).toThrow('successes');
    expect(() => wilsonInterval(0.5, 2)).toThrow('successes');
  });
});

describe('the random numbers', () => {
  it('are those of mulberry32', () => {
    const { first_uniforms_seed_42: wanted } = readStats<{ bootstrap: { first_uniforms_seed_42: number[] } }>(
      'intervals',
    ).bootstrap;
    const random = createRandom(42);
    expect(wanted.map(() => random.next())).toEqual(wanted);
  });

  it('shuffle without losing anything, and refuse to pick from nothing', () => {
    const items = Array.from({ length: 50 }, (_, i) => i);
    const shuffled = createRandom(3).shuffle(items);
    expect(shuffled).not.toEqual(items);
    expect(shuffled.toSorted((a, b) => a - b)).toEqual(items);
    expect(() => createRandom(1).pick([])).toThrow('at least one');
  });
});
