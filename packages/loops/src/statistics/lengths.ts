/** What the length of an answer does to its weight, and to its reward. P prompts, G samples of each. */
import { complaint } from '@loopwright/protocol';

/**
 * By what each token's advantage is divided. The losses are sums over tokens, so without this an answer counts by its length.
 *
 * - `sequence`: tokens of the answer; every answer counts the same (GRPO, arXiv:2402.03300, equation 3)
 * - `group`: tokens of its group
 * - `batch`: tokens of all groups; every token counts the same, whatever the batch (DAPO, arXiv:2503.14476, equation 8)
 * - a number: that, such as the most tokens that an answer may have (Dr. GRPO, arXiv:2503.20783)
 */
export type LengthNormalization = 'sequence' | 'group' | 'batch' | number;

type Table = readonly (readonly number[])[];

/**
 * Advantages for each token of an answer, divided as {@link LengthNormalization} says. Means over answers and groups, which
 * GRPO takes besides, are not taken.
 *
 * @param advantages_PG one per answer
 * @param lengths_PG tokens of each answer, same shape, from 1
 * @returns same shape
 * @throws `invalid_argument` for other shapes, lengths below 1, a divisor that is not above 0
 */
export function normalizeByLength(advantages_PG: Table, lengths_PG: Table, by: LengthNormalization): number[][] {
  const divisors_PG = lengthDivisors(lengths_PG, by);
  return advantages_PG.map((advantages_G, p) =>
    advantages_G.map((advantage, g) => {
      const divisor = divisors_PG[p]?.[g];
      if (divisor !== undefined) return advantage / divisor;
      throw complaint({ field: `lengths[${p}][${g}]`, expected: 'a length for each advantage', got: 'nothing' });
    }),
  );
}

/** What the advantages of an answer are divided by, answer by answer. @throws `invalid_argument` */
export function lengthDivisors(lengths_PG: Table, by: LengthNormalization): number[][] {
  for (const [p, lengths_G] of lengths_PG.entries()) {
    for (const [g, length] of lengths_G.entries()) {
      if (Number.isInteger(length) && length >= 1) continue;
      throw complaint({ field: `lengths[${p}][${g}]`, expected: 'a whole number from 1', got: String(length) });
    }
  }
  const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
  switch (by) {
    case 'sequence':
      return lengths_PG.map((lengths_G) => [...lengths_G]);
    case 'group':
      return lengths_PG.map((lengths_G) => lengths_G.map(() => sum(lengths_G)));
    case 'batch': {
      const all = sum(lengths_PG.flat());
      return lengths_PG.map((lengths_G) => lengths_G.map(() => all));
    }
    default:
      if (!(by > 0 && by < Number.POSITIVE_INFINITY)) {
        const expected = '`sequence`, `group`, `batch` or a number above 0';
        throw complaint({ field: 'lengthNormalization', expected, got: String(by) });
      }
      return lengths_PG.map((lengths_G) => lengths_G.map(() => by));
  }
}

/**
 * What is added to the reward of a long answer: 0 up to `maxTokens − buffer` tokens, then down in a line to −1 at `maxTokens`
 * and beyond.
 *
 * @param length tokens of the answer
 * @throws `invalid_argument` unless 0 < buffer ≤ maxTokens
 * @see arXiv:2503.14476 (DAPO), equation 13
 */
export function overlongPenalty(
  length: number,
  { maxTokens, buffer }: { readonly maxTokens: number; readonly buffer: number },
): number {
  if (!(buffer > 0 && buffer <= maxTokens)) {
    throw complaint({ field: 'buffer', expected: `above 0, at most ${maxTokens} (maxTokens)`, got: String(buffer) });
  }
  const over = length - (maxTokens - buffer);
  return over <= 0 ? 0 : -Math.min(1, over / buffer);
}
