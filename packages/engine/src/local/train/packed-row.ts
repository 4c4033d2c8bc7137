/**
 * Datums that begin alike share their beginning: the tokens that no loss reads (a group's prompt) are computed once, and each datum
 * goes on from there as a branch that sees the beginning and itself. A group of 8 answers to one prompt so costs one prompt.
 *
 * What is shared is a function of the data alone. A shared token has the same log-probability for every datum that it belongs to,
 * and no loss (its weight or advantage is 0), so that only the order of sums tells packed from apart.
 */
import type { Datum, LossSpec } from '@loopwright/protocol';

/** One row of a micro-batch: `trunk` tokens that all its datums begin with, then what each has beyond them, in order. */
export interface PackedRow {
  /** Positions of the datums in the operation. */
  readonly datums: readonly number[];
  readonly trunk: number;
  /** Tokens in all. */
  readonly tokens: number;
}

export interface PackOptions {
  /** Tokens at most in a row of several datums. */
  readonly maxTokens: number;
  /** Tokens of a row at which attention costs as much as everything else. */
  readonly attentionTokens: number;
}

export const targetsOf = (datum: Datum) => datum.targetTokens.shape[1] ?? 1;

/** Positions at the beginning that add exactly nothing to the loss, whatever the model says; the last one never counts as such. */
function silentPrefix({ modelInput, weights, advantages, targetTokens }: Datum, loss: LossSpec): number {
  const K = targetTokens.shape[1] ?? 1;
  // dro has a term without the advantage.
  const byAdvantage = loss.name === 'cross_entropy' || loss.name === 'dro' ? undefined : advantages?.data;
  let position = 0;
  while (position < modelInput.length - 1) {
    const weighted =
      weights === undefined || weights.data.subarray(position * K, (position + 1) * K).some((w) => w !== 0);
    if (weighted && byAdvantage?.[position] !== 0) break;
    position++;
  }
  return position;
}

/** Order of datums that begins alike stay together in: by targets a token, then by their tokens, then as they came. */
function compare(data: readonly Datum[], a: number, b: number): number {
  const [x, y] = [data[a]!, data[b]!];
  const byTargets = targetsOf(y) - targetsOf(x);
  if (byTargets !== 0) return byTargets;
  const [p, q] = [x.modelInput, y.modelInput];
  const length = Math.min(p.length, q.length);
  for (let i = 0; i < length; i++) if (p[i] !== q[i]) return p[i]! - q[i]!;
  return p.length - q.length || a - b;
}

/** Tokens that two datums have in common at their beginning: ids, targets and temperatures alike. */
function commonPrefix(a: Datum, b: Datum, limit: number): number {
  const K = targetsOf(a);
  const temperature = (datum: Datum, position: number) => datum.temperature?.data[position] ?? 1;
  for (let i = 0; i < limit; i++) {
    if (a.modelInput[i] !== b.modelInput[i] || temperature(a, i) !== temperature(b, i)) return i;
    for (let k = i * K; k < (i + 1) * K; k++) if (a.targetTokens.data[k] !== b.targetTokens.data[k]) return i;
  }
  return limit;
}

/** Rows of one datum or several; several only where that costs less than apart. */
export function packRows(
  data: readonly Datum[],
  loss: LossSpec,
  { maxTokens, attentionTokens }: PackOptions,
): PackedRow[] {
  const cost = (tokens: number) => tokens * (1 + tokens / attentionTokens);
  const silent = data.map((datum) => silentPrefix(datum, loss));
  const order = data.map((_, row) => row).sort((a, b) => compare(data, a, b));
  const rows: { datums: number[]; trunk: number; tokens: number; sum: number }[] = [];
  for (const row of order) {
    const length = data[row]!.modelInput.length;
    const open = rows.at(-1);
    if (open !== undefined && targetsOf(data[open.datums[0]!]!) === targetsOf(data[row]!)) {
      const limit = Math.min(open.datums.length === 1 ? silent[open.datums[0]!]! : open.trunk, silent[row]!);
      const trunk = commonPrefix(data[open.datums[0]!]!, data[row]!, limit);
      const tokens = open.sum + length - open.datums.length * trunk;
      if (trunk > 0 && tokens <= maxTokens && cost(tokens) < cost(open.tokens) + cost(length)) {
        open.datums.push(row);
        Object.assign(open, { trunk, tokens, sum: open.sum + length });
        continue;
      }
    }
    rows.push({ datums: [row], trunk: 0, tokens: length, sum: length });
  }
  return rows.map(({ datums, trunk, tokens }) => ({ datums, trunk, tokens }));
}

/** Where each datum's own tokens begin in its row. */
export function branchStarts(data: readonly Datum[], { datums, trunk }: PackedRow): number[] {
  let next = trunk;
  return datums.map((datum) => {
    const start = next;
    next += data[datum]!.modelInput.length - trunk;
    return start;
  });
}

/** What each token of a row belongs to, as masks are made of: 0 the trunk, 1, 2, … the datums in their order, −1 padding. */
export function fillSegments(segments: BigInt64Array, data: readonly Datum[], row: PackedRow): void {
  segments.fill(0n, 0, row.trunk).fill(-1n, row.tokens);
  const starts = branchStarts(data, row);
  row.datums.forEach((datum, m) => {
    const start = starts[m]!;
    segments.fill(BigInt(m + 1), start, start + data[datum]!.modelInput.length - row.trunk);
  });
}
