/** Drawing outside the graph, where the distribution is cut (top_k, top_p): float64; among equal logits the lower ids are kept. */

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
  /** At temperature 1 without truncation. */
  readonly logprob: number;
}

/** Draws one token of logits [V] by a uniform number u in [0, 1). Top-k cuts first, then top-p over what is left, at the temperature. */
export function drawTruncated(logits: Float32Array, { temperature, topK, topP }: Cut, u: number): Drawn {
  const ascending = logits.slice().sort();
  const V = ascending.length;
  const max = ascending[V - 1]!;
  let total = 0;
  for (const logit of logits) total += Math.exp(logit - max);
  const logTotal = Math.log(total) + max;

  const weigh = (logit: number) => (temperature === 0 ? Number(logit === max) : Math.exp((logit - max) / temperature));
  const limit = temperature === 0 ? 1 : topK > 0 ? Math.min(topK, V) : V;
  const count = topP < 1 ? countForMass(ascending, { limit, topP, weigh }) : limit;
  const threshold = ascending[V - count]!;
  const kept: number[] = [];
  const equal: number[] = [];
  for (let id = 0; id < V; id++) {
    if (logits[id]! > threshold) kept.push(id);
    else if (logits[id] === threshold) equal.push(id);
  }
  kept.push(...equal.slice(0, count - kept.length));
  const weights = kept.map((id) => weigh(logits[id]!));
  let rest = u * weights.reduce((sum, weight) => sum + weight, 0);
  let at = 0;
  while (at < kept.length - 1 && rest >= weights[at]!) {
    rest -= weights[at]!;
    at++;
  }
  const token = kept[at]!;
  return { token, logprob: logits[token]! - logTotal };
}

/** The fewest of the `limit` likeliest whose share of their sum reaches topP; at least one. */
function countForMass(
  ascending: Float32Array,
  { limit, topP, weigh }: { limit: number; topP: number; weigh: (logit: number) => number },
): number {
  const V = ascending.length;
  let total = 0;
  for (let i = 0; i < limit; i++) total += weigh(ascending[V - 1 - i]!);
  let sum = 0;
  for (let i = 0; i < limit; i++) {
    sum += weigh(ascending[V - 1 - i]!);
    if (sum >= topP * total) return i + 1;
  }
  return limit;
}
