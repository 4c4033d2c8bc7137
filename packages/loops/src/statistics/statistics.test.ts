import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { createRandom } from '../random.js';
import { centerRewards, deadGroups, leaveOneOutRewards, normalizeRewards } from './advantages.js';
import { generalizedAdvantages } from './gae.js';
import { ratioInterval, wilsonInterval } from './intervals.js';
import { klEstimate, klK1, klK2, klK3, klSlope } from './kl.js';
import { type LengthNormalization, normalizeByLength, overlongPenalty } from './lengths.js';
import { quantiles } from './quantiles.js';
import { returnsToGo, turnAdvantages } from './turn-credit.js';

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
    expect(deadGroups([[0.1, 0.1, 0.1], [1, 0], [0.7], []])).toBe(3);
  });

  it('are refused for empty groups and rewards that are not finite', () => {
    for (const advantages of [centerRewards, normalizeRewards, leaveOneOutRewards]) {
      expect(() => advantages([[1], []])).toThrow('rewards[1]: expected at least one reward');
      expect(() => advantages([[1, Number.NaN]])).toThrow('rewards[0][1]: expected a finite number, got NaN');
    }
  });
});

describe('advantages of turns', () => {
  it('go by what a turn led to, later rewards discounted', () => {
    expect(returnsToGo([1, 2, 4])).toEqual([7, 6, 4]);
    expect(returnsToGo([1, 2, 4], 0.5)).toEqual([3, 4, 4]);
    expect(returnsToGo([1, 2, 4], 0)).toEqual([1, 2, 4]);
    expect(returnsToGo([])).toEqual([]);
  });

  it('compare a turn with the turns of its index, of its own problem', () => {
    const rewards = [
      [[0, 1], [3], [0, 0]],
      [
        [5, 1],
        [5, 1],
      ],
    ];
    // Returns of the first problem: 1 3 0 at the first turn, 1 and 0 at the second.
    const third = expect.closeTo(-1 / 3, 12);
    expect(turnAdvantages(rewards)).toEqual([
      [[third, 0.5], [expect.closeTo(5 / 3, 12)], [expect.closeTo(-4 / 3, 12), -0.5]],
      [
        [0, 0],
        [0, 0],
      ],
    ]);
    const rloo = turnAdvantages(rewards, { advantages: leaveOneOutRewards, discount: 0 });
    expect(rloo[0]).toEqual([[-1.5, 1], [3], [-1.5, -1]]);
  });

  it('are exactly 0 where an episode is alone, and those of whole episodes where each has one turn', () => {
    expect(turnAdvantages([[[1, 7], [0]]])).toEqual([[[4, 0], [-4]]]);
    const rewards = [0.3, 1, 0.2, 0.7];
    expect(turnAdvantages([rewards.map((reward) => [reward])])[0]!.flat()).toEqual(centerRewards([rewards])[0]);
  });

  it('are refused for rewards that are not finite and discounts outside 0 to 1', () => {
    expect(() => returnsToGo([1, Number.NaN])).toThrow('rewards[1]: expected a finite number, got NaN');
    expect(() => turnAdvantages([[[1]]], { discount: 1.5 })).toThrow('discount: expected from 0 to 1, got 1.5');
  });
});

describe('generalised advantages', () => {
  interface Gae {
    readonly name: string;
    readonly rewards: number[];
    readonly values: number[];
    readonly dones: boolean[];
    readonly last_value: number;
    readonly gamma: number;
    readonly lambda: number;
    readonly advantages: number[];
    readonly returns: number[];
  }
  const { cases } = readStats<{ gae: { cases: Gae[] } }>('advantages').gae;

  it.each(cases)('of $name equal the reference to 1e-12', (gae) => {
    const { rewards, values, dones, lambda } = gae;
    const result = generalizedAdvantages({
      ...{ rewards, values, dones, lambda },
      lastValue: gae.last_value,
      discount: gae.gamma,
    });
    expectNear(result.advantages, gae.advantages, 1e-12);
    expectNear(result.returns, gae.returns, 1e-12);
  });

  it('end with the last step unless told otherwise', () => {
    const cut = { rewards: [0, 1], values: [0.5, 0.5], lastValue: 100 };
    expect(generalizedAdvantages(cut)).toEqual(generalizedAdvantages({ ...cut, lastValue: 0 }));
    expect(generalizedAdvantages({ rewards: [], values: [] })).toEqual({ advantages: [], returns: [] });
  });

  it('are refused for lists that do not fit and numbers out of range', () => {
    const good = { rewards: [1, 2], values: [0, 0] };
    expect(() => generalizedAdvantages({ ...good, values: [0] })).toThrow('values: expected 2 numbers');
    expect(() => generalizedAdvantages({ ...good, dones: [true] })).toThrow('dones: expected 2 booleans');
    expect(() => generalizedAdvantages({ ...good, rewards: [1, Number.NaN] })).toThrow('rewards[1]: expected a finite');
    expect(() => generalizedAdvantages({ ...good, lambda: 1.1 })).toThrow('lambda: expected from 0 to 1');
    expect(() => generalizedAdvantages({ ...good, discount: Number.NaN })).toThrow('discount');
    expect(() => generalizedAdvantages({ ...good, lastValue: Number.NaN })).toThrow('lastValue');
  });
});

describe('lengths', () => {
  const advantages = [[1, -1], [3]];
  const lengths = [[2, 4], [6]];

  it('divide by the tokens of the answer, of its group, of all, or by a number', () => {
    const by = (kind: LengthNormalization) => normalizeByLength(advantages, lengths, kind);
    expect(by('sequence')).toEqual([[1 / 2, -1 / 4], [3 / 6]]);
    expect(by('group')).toEqual([[1 / 6, -1 / 6], [3 / 6]]);
    expect(by('batch')).toEqual([[1 / 12, -1 / 12], [3 / 12]]);
    expect(by(8)).toEqual([[1 / 8, -1 / 8], [3 / 8]]);
  });

  it('are refused when one is missing or 0, and so is a divisor of 0', () => {
    expect(() => normalizeByLength(advantages, [[2, 4]], 'sequence')).toThrow('lengths[1][0]: expected a length');
    expect(() => normalizeByLength(advantages, [[2, 0], [6]], 'batch')).toThrow(
      'lengths[0][1]: expected a whole number',
    );
    expect(() => normalizeByLength(advantages, lengths, 0)).toThrow('lengthNormalization: expected `sequence`');
    const misspelt = 'token' as LengthNormalization; // as callers in JavaScript may
    expect(() => normalizeByLength(advantages, lengths, misspelt)).toThrow('lengthNormalization');
  });

  it('cost nothing up to the buffer, then a share of 1', () => {
    const penalty = (length: number) => overlongPenalty(length, { maxTokens: 20, buffer: 4 });
    expect([0, 16, 17, 18, 20, 25].map(penalty)).toEqual([0, 0, -0.25, -0.5, -1, -1]);
    expect(() => overlongPenalty(1, { maxTokens: 4, buffer: 5 })).toThrow('buffer: expected above 0, at most 4');
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

  it('have the gradients of the reference', () => {
    const { grad_wrt_logprobs: wanted } = readStats<{ grad_wrt_logprobs: Record<'k1' | 'k2' | 'k3', number[]> }>('kl');
    for (const name of ['k1', 'k2', 'k3'] as const) {
      expectNear(klSlope(name, kl.logprobs, kl.ref_logprobs), wanted[name], 1e-13);
      expect(klEstimate(name, kl.logprobs, kl.ref_logprobs)).toEqual(
        { k1: klK1, k2: klK2, k3: klK3 }[name](kl.logprobs, kl.ref_logprobs),
      );
    }
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

describe('the interval of a ratio', () => {
  it('is that of the mean where all denominators are 1, and covers the truth as often as it says where they differ', () => {
    // mean 2, standard deviation 1 of 1, 2, 3
    const plain = ratioInterval([1, 2, 3], [1, 1, 1]);
    expectNear(
      [plain.low, plain.high],
      [2 - 1.959963984540054 / Math.sqrt(3), 2 + 1.959963984540054 / Math.sqrt(3)],
      1e-12,
    );
    const random = createRandom(1);
    const covered = Array.from({ length: 400 }, () => {
      const lengths = Array.from({ length: 200 }, () => 1 + random.integer(20));
      const losses = lengths.map((length) => length * 2 * random.next()); // 1 a token in the mean
      const { low, high } = ratioInterval(losses, lengths);
      return low <= 1 && 1 <= high;
    }).filter(Boolean).length;
    expect(covered).toBeGreaterThan(400 * 0.91);
    expect(covered).toBeLessThan(400 * 0.98);
  });

  it('is unknown of one', () => {
    expect(ratioInterval([1], [2]).low).toBeNaN();
  });
});

describe('quantiles', () => {
  it('interpolate as NumPy does by default', () => {
    // numpy.quantile([3, 1, 2, 10], [0, 0.05, 0.5, 0.95, 1])
    expectNear(quantiles([3, 1, 2, 10], [0, 0.05, 0.5, 0.95, 1]), [1, 1.15, 2.5, 8.95, 10], 1e-12);
    expect(quantiles([4], [0.05, 0.95])).toEqual([4, 4]);
    expect(quantiles([], [0.5])).toEqual([Number.NaN]);
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
