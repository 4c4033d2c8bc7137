/** The losses, against values and gradients of PyTorch and against finite differences. */
import { readFileSync } from 'node:fs';
import type { CustomDatum, CustomLoss } from '@loopwright/client';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rlDatum } from '../datums/rl-datum.js';
import { dpo, ipo } from './dpo.js';
import { gspo } from './gspo.js';
import { klLoss } from './kl-loss.js';
import { kto } from './kto.js';
import type { ReferencedDatum } from './loss-datum.js';
import { ktoData, preferenceData } from './preference-data.js';
import { orpo, simpo } from './reference-free.js';

function readStats<T>(name: string): T {
  const path = new URL(`../../../testkit/fixtures/stats/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(path, 'utf8')) as T; // our own files
}

/** A prompt of two tokens and a completion of as many as asked for. */
function referenced(length: number, reference: number): ReferencedDatum {
  const tokens = Array.from({ length: length + 1 }, (_, t) => t);
  const weights = tokens.map((t) => (t === 0 ? 0 : 1));
  // Masked positions hold nonsense, which must not count.
  const refLogProb = tokens.map((t) => (t === 0 ? Number.NaN : reference / length));
  return { modelInput: tokens, lossFnInputs: { targetTokens: tokens, weights, refLogProb } };
}

function logprobsOf(sum: number, length: number): number[] {
  return [Number.NEGATIVE_INFINITY, ...new Array<number>(length).fill(sum / length)];
}

/** Every token of a completion has the gradient of its sum; masked ones have none. */
function expectTokens(gradients: ArrayLike<number> | undefined, slope: number, length: number): void {
  const values = Array.from(gradients ?? []);
  expect(values).toHaveLength(length + 1);
  expect(Object.is(values[0], 0) || Object.is(values[0], -0)).toBe(true);
  for (const value of values.slice(1)) expectNear(value, slope, 1e-11);
}

function expectNear(got: number | undefined, wanted: number, tolerance: number): void {
  expect(Math.abs(got! - wanted), `${got} for ${wanted}`).toBeLessThanOrEqual(tolerance * (1 + Math.abs(wanted)));
}

interface PairCase {
  readonly sum: number;
  readonly grad_of_sum: { readonly policy_chosen: number[]; readonly policy_rejected: number[] };
  readonly margins?: number[];
  readonly rewards_chosen?: number[];
  readonly accuracy?: number;
}

interface KtoCase {
  readonly beta: number;
  readonly desirable_weight: number;
  readonly undesirable_weight: number;
  readonly policy: number[];
  readonly ref: number[];
  readonly desirable: boolean[];
  readonly ref_kl: number[];
  readonly policy_kl: number[];
  readonly kl: number;
  readonly sum: number;
  readonly grad_of_sum: { readonly policy: number[] };
}

const preference = readStats<{
  readonly inputs: Readonly<Record<string, number[]>>;
  readonly cases: Readonly<Record<string, PairCase & KtoCase>>;
}>('preference');

const average = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

describe('losses over pairs equal the reference in value and gradient', () => {
  const { policy_chosen, policy_rejected, ref_chosen, ref_rejected, chosen_lengths, rejected_lengths } =
    preference.inputs as Record<string, number[]>; // the file has these
  const sides = policy_chosen!.flatMap((_, i) => [
    { policy: policy_chosen![i]!, reference: ref_chosen![i]!, length: chosen_lengths![i]! },
    { policy: policy_rejected![i]!, reference: ref_rejected![i]!, length: rejected_lengths![i]! },
  ]);
  const cases: readonly [string, CustomLoss<ReferencedDatum>][] = [
    ['dpo-beta0.1-smoothing0.0', dpo()],
    ['dpo-beta0.1-smoothing0.1', dpo({ labelSmoothing: 0.1 })],
    ['dpo-beta0.5-smoothing0.0', dpo({ beta: 0.5 })],
    ['dpo-beta0.5-smoothing0.1', dpo({ beta: 0.5, labelSmoothing: 0.1 })],
    ['dpo-hinge-beta0.1', dpo({ kind: 'hinge' })],
    ['ipo-beta0.1', ipo()],
    ['simpo-beta2-gamma1', simpo()],
    ['orpo-lambda0.1', orpo()],
  ];

  it('in every case that the file has', () => {
    const pairCases = Object.keys(preference.cases).filter((name) => !name.startsWith('kto'));
    expect(pairCases).toEqual(cases.map(([name]) => name));
  });

  it.each(cases)('%s', (name, loss) => {
    const wanted = preference.cases[name]!;
    const {
      loss: value,
      gradients,
      metrics,
    } = loss(
      sides.map(({ policy, length }) => logprobsOf(policy, length)),
      sides.map(({ reference, length }) => referenced(length, reference)),
    );
    expectNear(value, wanted.sum, 1e-12);
    for (const [i, { length }] of sides.entries()) {
      const side = i % 2 === 0 ? 'policy_chosen' : 'policy_rejected';
      expectTokens(gradients[i], wanted.grad_of_sum[side][Math.floor(i / 2)]!, length);
    }
    if (wanted.margins !== undefined) {
      expectNear(metrics?.['reward/margin'], average(wanted.margins), 1e-12);
      expectNear(metrics?.['reward/chosen'], average(wanted.rewards_chosen!), 1e-12);
      expect(metrics?.['reward/accuracy']).toBe(wanted.accuracy);
    }
  });
});

describe('KTO equals the reference', () => {
  const cases = Object.entries(preference.cases).filter(([name]) => name.startsWith('kto'));

  it.each(cases)('%s', (_, wanted) => {
    const length = 4;
    const judged = wanted.desirable.map((desirable, i) => ({ ...referenced(length, wanted.ref[i]!), desirable }));
    const mismatched = wanted.ref_kl.map((ref) => ({ ...referenced(length, ref), forwardOnly: true as const }));
    const { loss, gradients, metrics } = kto({
      beta: wanted.beta,
      desirableWeight: wanted.desirable_weight,
      undesirableWeight: wanted.undesirable_weight,
    })(
      [...wanted.policy, ...wanted.policy_kl].map((sum) => logprobsOf(sum, length)),
      [...judged, ...mismatched],
    );
    expectNear(loss, wanted.sum, 1e-12);
    expectNear(metrics?.['kl/mismatched'], wanted.kl, 1e-12);
    for (const [i, slope] of wanted.grad_of_sum.policy.entries()) expectTokens(gradients[i], slope, length);
    // No gradient goes through the divergence.
    for (const row of gradients.slice(judged.length)) expect(Array.from(row).every((slope) => slope === 0)).toBe(true);
  });
});

it('KL as a loss equals the reference in value and gradient, for every estimate', () => {
  const kl = readStats<{
    readonly logprobs: number[];
    readonly ref_logprobs: number[];
    readonly mean: Record<string, number>;
    readonly grad_wrt_logprobs: Record<string, number[]>;
  }>('kl');
  const length = kl.logprobs.length;
  const datum = {
    modelInput: kl.logprobs.map((_, t) => t),
    lossFnInputs: {
      targetTokens: kl.logprobs.map((_, t) => t),
      weights: kl.logprobs.map(() => 1),
      refLogProb: kl.ref_logprobs,
    },
  };
  for (const estimator of ['k1', 'k2', 'k3'] as const) {
    const { loss, gradients, metrics } = klLoss({ coefficient: 0.5, estimator })([kl.logprobs], [datum]);
    expectNear(loss, 0.5 * length * kl.mean[estimator]!, 1e-12);
    expectNear(metrics?.['kl/mean'], kl.mean[estimator]!, 1e-12);
    for (const [t, slope] of kl.grad_wrt_logprobs[estimator]!.entries()) {
      expect(Math.abs(gradients[0]![t]! - 0.5 * slope)).toBeLessThanOrEqual(1e-9 * Math.abs(slope));
    }
  }
});

describe('gradients equal finite differences', () => {
  const logprob = fc.double({ min: -4, max: -0.05, noNaN: true });
  const row = fc.array(logprob, { minLength: 1, maxLength: 5 });

  function expectDifferences<D extends CustomDatum>(
    loss: CustomLoss<D>,
    rows: readonly (readonly number[])[],
    data: readonly D[],
  ): void {
    const step = 1e-6;
    const { gradients } = loss(rows, data);
    for (const [i, values] of rows.entries()) {
      if (data[i]?.forwardOnly === true) continue;
      for (const [t] of values.entries()) {
        const at = (by: number) => rows.map((r, j) => r.map((x, u) => (j === i && u === t ? x + by : x)));
        const wanted = (loss(at(step), data).loss - loss(at(-step), data).loss) / (2 * step);
        expectNear(gradients[i]![t], wanted, 1e-7);
      }
    }
  }

  function datumOf(reference: readonly number[]): ReferencedDatum {
    const ids = reference.map((_, t) => t);
    // Weights other than 1, so that they are seen to count.
    const weights = ids.map((t) => [1, 0.5, 2][t % 3]!);
    return { modelInput: ids, lossFnInputs: { targetTokens: ids, weights, refLogProb: reference } };
  }

  const pairs = fc.array(fc.tuple(row, row), { minLength: 1, maxLength: 3 }).map((list) => list.flat());
  const ofPairs: readonly [string, CustomLoss<ReferencedDatum>][] = [
    ['dpo', dpo({ beta: 0.3, labelSmoothing: 0.2 })],
    ['ipo', ipo({ beta: 0.7 })],
    ['simpo', simpo({ beta: 1.5, gamma: 0.4 })],
    ['orpo', orpo({ lambda: 0.6 })],
    ['kl', klLoss({ coefficient: 0.2 })],
  ];

  it.each(ofPairs)('of %s', (_, loss) => {
    fc.assert(
      fc.property(pairs, (rows) => {
        expectDifferences(
          loss,
          rows,
          rows.map((values) => datumOf(values.map((x, t) => x - 0.3 + 0.2 * t))),
        );
      }),
      { numRuns: 40, seed: 1 },
    );
  });

  it('of kto', () => {
    fc.assert(
      fc.property(fc.array(row, { minLength: 2, maxLength: 5 }), (rows) => {
        const data = rows.map((values, i) => ({
          ...datumOf(values.map((x, t) => x - 0.3 + 0.2 * t)),
          ...(i === 0 ? { forwardOnly: true as const } : { desirable: i % 2 === 0 }),
        }));
        expectDifferences(kto({ beta: 0.4, desirableWeight: 1.2 }), rows, data);
      }),
      { numRuns: 40, seed: 1 },
    );
  });

  it('of gspo, with clipped and with free sequences', () => {
    let clipped = 0;
    fc.assert(
      fc.property(row, fc.constantFrom(-1.3, 0.8), fc.constantFrom(-0.4, -0.05, 0.03, 0.5), (values, advantage, by) => {
        const tokens = values.map((_, t) => t);
        const logprobs = values.map((x, t) => x - by + 0.01 * t);
        const data = [rlDatum({ prompt: [9, 8], sequence: { tokens, logprobs }, advantage })];
        const loss = gspo({ clipLowThreshold: 0.9, clipHighThreshold: 1.1 });
        expectDifferences(loss, [[-3, ...values]], data);
        clipped += loss([[-3, ...values]], data).metrics?.['ratio/clipped_share'] ?? Number.NaN;
      }),
      { numRuns: 60, seed: 1 },
    );
    expect(clipped).toBeGreaterThan(5);
    expect(clipped).toBeLessThan(55);
  });
});

describe('gspo', () => {
  it('has one ratio a sequence, the geometric mean of those of its tokens', () => {
    const datum = rlDatum({ prompt: [1, 2], sequence: { tokens: [3, 4], logprobs: [-1, -2] }, advantage: 2 });
    const { loss, gradients, metrics } = gspo({ clipHighThreshold: 2 })([[Number.NaN, -0.9, -1.7]], [datum]);
    const ratio = Math.exp((0.1 + 0.3) / 2);
    expectNear(loss, -2 * ratio, 1e-12);
    expectNear(metrics?.['ratio/mean'], ratio, 1e-12);
    expect(Array.from(gradients[0]!).map((slope) => slope + 0)).toEqual(
      [0, -ratio, -ratio].map((x) => expect.closeTo(x, 12)),
    );
  });

  it('refuses advantages that differ within a sequence', () => {
    const sequence = { tokens: [3, 4], logprobs: [-1, -2] };
    const datum = rlDatum({ prompt: [1], sequence, advantage: [1, 2] });
    expect(() => gspo()([[-1, -1]], [datum])).toThrow('data[0].lossFnInputs.advantages: expected one advantage');
  });
});

describe('data of preferences', () => {
  it('is chosen and rejected by turns, with weights on the completions', () => {
    const [chosen, rejected] = preferenceData([{ prompt: [1, 2], chosen: [3, 4], rejected: [5] }]);
    expect(chosen).toEqual({
      modelInput: [1, 2, 3],
      lossFnInputs: { targetTokens: [2, 3, 4], weights: [0, 1, 1] },
    });
    expect(rejected?.lossFnInputs.targetTokens).toEqual([2, 5]);
  });

  it('mismatches completions with those of the next other prompt', () => {
    const example = (prompt: number, completion: number, desirable: boolean) => ({
      prompt: [prompt],
      completion: [completion],
      desirable,
    });
    const data = ktoData([example(1, 10, true), example(1, 11, false), example(2, 20, true)]);
    expect(data.map(({ modelInput, lossFnInputs }) => [modelInput[0], lossFnInputs.targetTokens])).toEqual([
      [1, [10]],
      [1, [20]],
      [1, [11]],
      [1, [20]],
      [2, [20]],
      [2, [10]],
    ]);
    expect(data.map((datum) => ('desirable' in datum ? datum.desirable : 'mismatched'))).toEqual([
      true,
      'mismatched',
      false,
      'mismatched',
      true,
      'mismatched',
    ]);
    expect(() => ktoData([example(1, 10, true), example(1, 11, false)])).toThrow(
      'examples: expected two prompts or more',
    );
  });
});

describe('refusals', () => {
  const one = referenced(1, -1);
  const row = logprobsOf(-1, 1);

  it('of data that is no pairs, has no reference, no weights, no mismatched completions', () => {
    expect(() => dpo()([row], [one])).toThrow('data: expected pairs, as dpo compares');
    const bare = { ...one, lossFnInputs: { ...one.lossFnInputs, refLogProb: [] } };
    expect(() => dpo()([row, row], [one, bare])).toThrow('data[1].lossFnInputs.refLogProb: expected 2 numbers');
    const masked = { ...one, lossFnInputs: { ...one.lossFnInputs, weights: [0, 0] } };
    expect(() => simpo()([row, row], [one, masked])).toThrow(
      'data[1].lossFnInputs.weights: expected numbers that add up',
    );
    expect(() => kto()([row], [{ ...one, desirable: true }])).toThrow('data: expected mismatched completions');
  });

  it('of options out of range', () => {
    expect(() => dpo({ beta: 0 })).toThrow('options.beta');
    expect(() => dpo({ labelSmoothing: 0.6 })).toThrow('options.labelSmoothing');
    expect(() => simpo({ gamma: -1 })).toThrow('options.gamma');
    expect(() => orpo({ lambda: Number.NaN })).toThrow('options.lambda');
    expect(() => kto({ desirableWeight: -1 })).toThrow('options.desirableWeight');
    expect(() => gspo({ clipHighThreshold: 0.9 })).toThrow('options.clipHighThreshold');
    expect(() => klLoss({ coefficient: -1 })).toThrow('options.coefficient');
  });

  it('of nothing else: a completion that is certain has a finite ORPO loss', () => {
    const { loss, gradients } = orpo()([[0, 0], row], [one, one]);
    expect(Number.isFinite(loss)).toBe(true);
    expect(Array.from(gradients[0]!)[1]).toBe(-1);
  });
});
