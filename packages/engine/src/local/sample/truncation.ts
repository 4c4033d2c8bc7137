/** Drawing outside the graph, where the distribution is cut (top_k, top_p): float64; among equal logits the lower ids are kept. */
import { Descending } from './descending.js';

export interface Cut {
  /** 0 is greedy. */
  readonly temperature: number;
  /** −1 keeps all. */
  readonly topK: number;
  /** 1 keeps all. */
  readonly topP: number;
}

export interface Drawn {
  readonly token: number;
  /** At temperature 1 without truncation; NaN where the logits give no distribution, and the token then means nothing. */
  readonly logprob: number;
}

/** Draws one token of logits [V] by a uniform number u in [0, 1). Top-k cuts first, then top-p over what is left, at the temperature. */
export function drawTruncated(logits: Float32Array, { temperature, topK, topP }: Cut, u: number): Drawn {
  const V = logits.length;
  let max = Number.NEGATIVE_INFINITY;
  for (let id = 0; id < V; id++) if (logits[id]! > max) max = logits[id]!;
  const total = sumOfExp(logits, max, 1);
  if (!Number.isFinite(total)) return { token: 0, logprob: Number.NaN };

  const descending = new Descending(logits, max);
  const weigh = (logit: number) => (temperature === 0 ? Number(logit === max) : Math.exp((logit - max) / temperature));
  const limit = temperature === 0 ? 1 : topK > 0 ? Math.min(topK, V) : V;
  let count = limit;
  if (topP < 1) {
    const whole = limit < V ? undefined : temperature === 1 ? total : sumOfExp(logits, max, temperature);
    count = countForMass(descending, { limit, topP, weigh, whole });
  }
  const threshold = descending.at(count - 1);
  const kept: number[] = [];
  const equal: number[] = [];
  for (let id = 0; id < V; id++) {
    if (logits[id]! < threshold) continue;
    if (logits[id]! > threshold) kept.push(id);
    else equal.push(id);
  }
  for (let i = 0; kept.length < count; i++) kept.push(equal[i]!);
  const weights = kept.map((id) => weigh(logits[id]!));
  let rest = u * weights.reduce((sum, weight) => sum + weight, 0);
  let at = 0;
  while (at < kept.length - 1 && rest >= weights[at]!) {
    rest -= weights[at]!;
    at++;
  }
  const token = kept[at]!;
  return { token, logprob: logits[token]! - (Math.log(total) + max) };
}

/** Σ e^((logit − max) / temperature), in the order of the ids. An index, as `for of` over 49,152 floats takes twice the time. */
function sumOfExp(logits: Float32Array, max: number, temperature: number): number {
  let sum = 0;
  for (let id = 0; id < logits.length; id++) sum += Math.exp((logits[id]! - max) / temperature);
  return sum;
}

interface Mass {
  readonly limit: number;
  readonly topP: number;
  readonly weigh: (logit: number) => number;
  /** The sum of all weights in any order, where nothing but top-p cuts. */
  readonly whole: number | undefined;
}

/**
 * The fewest of the `limit` likeliest whose share of their sum reaches topP; at least one.
 *
 * Both sums are by definition taken from the largest down. Of a whole vocabulary that would need all of it sorted, so the sum in
 * another order serves, but for where rounding could decide.
 */
function countForMass(descending: Descending, { limit, topP, weigh, whole }: Mass): number {
  const fromLargest = () => {
    let sum = 0;
    for (let i = 0; i < limit; i++) sum += weigh(descending.at(i));
    return sum;
  };
  let total = whole ?? fromLargest();
  // Twice the bound on the rounding of two sums of so many terms.
  let slack = whole === undefined ? -1 : whole * limit * 2 ** -51;
  let sum = 0;
  for (let i = 0; i < limit; i++) {
    sum += weigh(descending.at(i));
    if (Math.abs(sum - topP * total) <= slack) [total, slack] = [fromLargest(), -1];
    if (sum >= topP * total) return i + 1;
  }
  return limit;
}
