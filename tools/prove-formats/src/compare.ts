/** Whether two tools say the same of a model: how far their log-probs are apart, and whether their greedy tokens are. */

import type { Limit } from './limits.js';
import type { Answer, OurAnswer } from './ours.js';

export interface Comparison {
  /** Nats. */
  readonly largest: number;
  readonly mean: number;
  /** Log-probs that were compared. */
  readonly count: number;
  /** Prompts whose greedy tokens are all equal. */
  readonly equalPrompts: number;
  readonly prompts: number;
  /** The widest gap between the two likeliest tokens at which greedy tokens parted; 0 when none did. */
  readonly widestParting: number;
  /** What is wrong, in words; empty when all is well. */
  readonly faults: readonly string[];
}

/**
 * Log-probs have to be within the limit. Greedy tokens have to be equal, unless the two likeliest were nearer to each other than twice the
 * limit, where both tools may be right; behind such a place they can't be compared.
 */
export function compare(ours: OurAnswer, theirs: Answer, limit: Limit): Comparison {
  const faults: string[] = [];
  const values = ours.logprobs.flat();
  const distances = ours.logprobs.flatMap((row, i) => row.map((value, t) => Math.abs(value - theirs.logprobs[i]![t]!)));
  const largest = Math.max(0, ...distances);
  const mean = distances.reduce((sum, distance) => sum + distance, 0) / distances.length;
  if (!(largest <= limit.largest))
    faults.push(`a log-prob (${values[distances.indexOf(largest)]?.toFixed(1)}) is off by ${largest.toExponential(1)}`);
  if (!(mean <= limit.mean)) faults.push(`log-probs are off by ${mean.toExponential(1)} on average`);
  let equalPrompts = 0;
  let widestParting = 0;
  for (const [i, tokens] of ours.greedy.entries()) {
    const step = tokens.findIndex((token, at) => token !== theirs.greedy[i]![at]);
    if (step < 0) equalPrompts += 1;
    else {
      const gap = ours.gaps[i]![step]!;
      widestParting = Math.max(widestParting, gap);
      if (!(gap <= 2 * limit.largest))
        faults.push(`greedy tokens of prompt ${i + 1} part at token ${step + 1}, where the gap is ${gap.toFixed(3)}`);
    }
  }
  const [texts, otherTexts] = [ours.greedyTexts, theirs.greedyTexts];
  const equalTokens = (i: number) => ours.greedy[i]!.every((token, at) => token === theirs.greedy[i]![at]);
  for (const [i, text] of (texts ?? []).entries()) {
    if (otherTexts !== undefined && equalTokens(i) && text !== otherTexts[i])
      faults.push(`the text of greedy tokens ${i + 1} differs`);
  }
  for (const [i, tokens] of (ours.tokens ?? []).entries()) {
    if (theirs.tokens !== undefined && JSON.stringify(tokens) !== JSON.stringify(theirs.tokens[i]))
      faults.push(`text ${i + 1} has other tokens`);
  }
  if ((texts === undefined) !== (otherTexts === undefined)) faults.push('only one of the two has a tokenizer');
  const prompts = ours.greedy.length;
  return { largest, mean, count: distances.length, equalPrompts, prompts, widestParting, faults };
}
