import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Cut, type Drawn, drawTruncated } from './truncation.js';

/** The definition, by sorting the whole vocabulary. */
function drawBySorting(logits: Float32Array, { temperature, topK, topP }: Cut, u: number): Drawn {
  const V = logits.length;
  const ids = Array.from(logits.keys()).sort((a, b) => logits[b]! - logits[a]! || a - b);
  const max = logits[ids[0]!]!;
  const weigh = (id: number) =>
    temperature === 0 ? Number(logits[id] === max) : Math.exp((logits[id]! - max) / temperature);
  const limit = temperature === 0 ? 1 : topK > 0 ? Math.min(topK, V) : V;
  const likeliest = ids.slice(0, limit);
  let count = limit;
  if (topP < 1) {
    const mass = likeliest.reduce((sum, id) => sum + weigh(id), 0);
    let sum = 0;
    const last = likeliest.findIndex((id) => {
      sum += weigh(id);
      return sum >= topP * mass;
    });
    if (last >= 0) count = last + 1;
  }
  // Walked over by id, those that equal the least one after the others.
  const least = logits[ids[count - 1]!]!;
  const kept = ids.slice(0, count).sort((a, b) => Number(logits[a] === least) - Number(logits[b] === least) || a - b);
  let rest = u * kept.reduce((sum, id) => sum + weigh(id), 0);
  let token = kept.at(-1)!;
  for (const id of kept.slice(0, -1)) {
    if (rest < weigh(id)) {
      token = id;
      break;
    }
    rest -= weigh(id);
  }
  const total = logits.reduce((sum, logit) => sum + Math.exp(logit - max), 0);
  return { token, logprob: logits[token]! - (Math.log(total) + max) };
}

const logit = fc.oneof(
  { weight: 6, arbitrary: fc.double({ min: -30, max: 30, noNaN: true }) },
  { weight: 6, arbitrary: fc.integer({ min: -3, max: 3 }) }, // many equal ones
  { weight: 1, arbitrary: fc.constantFrom(0, -0, Number.NEGATIVE_INFINITY, -3e38, 1e4, 3e38) },
);
const logits = fc
  .array(logit, { minLength: 1, maxLength: 300, size: 'max' })
  .map((values) => Float32Array.from(values))
  .filter((values) => values.some(Number.isFinite));
const cut: fc.Arbitrary<Cut> = fc.record({
  temperature: fc.oneof(fc.constantFrom(0, 1, 0.01, 2), fc.double({ min: 0.05, max: 3, noNaN: true })),
  topK: fc.oneof(fc.constantFrom(-1, 1, 1000), fc.integer({ min: 1, max: 300 })),
  topP: fc.oneof(fc.constantFrom(0, 0.5, 1 - 2 ** -53, 1 - 1e-13, 1), fc.double({ min: 0, max: 1, noNaN: true })),
});
const uniform = fc.oneof(fc.constantFrom(0, 0.5, 1 - 2 ** -53), fc.double({ min: 0, max: 1 - 2 ** -53, noNaN: true }));

describe('a draw from a cut distribution', () => {
  it('is the one that sorting gives, to the bit, ties and rounding included', () => {
    fc.assert(
      fc.property(logits, cut, uniform, (values, how, u) => {
        expect(drawTruncated(values, how, u)).toEqual(drawBySorting(values, how, u));
      }),
      { numRuns: 3000, seed: 1 },
    );
  });

  it('is so over a whole vocabulary whose probabilities add up to a border of top_p in one order and not in another', () => {
    const values = Float32Array.from({ length: 5000 }, (_, id) => -((id * 7919) % 5000) / 500);
    for (const topP of [0.1, 0.5, 0.9]) {
      // A share that some number of tokens reaches exactly, summed from the largest down.
      const sorted = Array.from(values, (value) => Math.exp(value)).sort((a, b) => b - a);
      const total = sorted.reduce((sum, weight) => sum + weight, 0);
      let sum = 0;
      const at = sorted.findIndex((weight) => {
        sum += weight;
        return sum >= topP * total;
      });
      expect(at).toBeGreaterThan(10);
      for (const nudge of [1 - 2 ** -53, 1, 1 + 2 ** -52]) {
        const how = { temperature: 1, topK: -1, topP: (sum / total) * nudge };
        for (const u of [0, 0.3, 1 - 2 ** -53])
          expect(drawTruncated(values, how, u)).toEqual(drawBySorting(values, how, u));
      }
    }
  });

  it('has no log-probability where the logits are no distribution', () => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY])
      expect(drawTruncated(Float32Array.of(1, bad, 2), { temperature: 1, topK: 2, topP: 1 }, 0.5).logprob).toBeNaN();
    const none = new Float32Array(4).fill(Number.NEGATIVE_INFINITY);
    expect(drawTruncated(none, { temperature: 1, topK: -1, topP: 0.5 }, 0.5).logprob).toBeNaN();
  });
});
