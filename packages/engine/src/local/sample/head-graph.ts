/**
 * From hidden states to the next token: the output projection and a way to choose, as array programs of their own,
 * so that rows with different ways share the decoding step.
 *
 * - `draw`: an exact draw from the softmax at temperature 1 by a uniform number u: the first token whose cumulative probability
 *   exceeds u, found in two levels (blocks of tokens by their sums, then inside the block) to keep the scan short
 * - `scaled`: the same from logits / temperature; the probability returned is still that of temperature 1
 * - `greedy`: the likeliest token
 * - `logits`: all of them, for truncation outside
 * B rows, D hidden width, V vocabulary, M blocks of W tokens.
 */
import {
  add,
  cast,
  compile,
  cumSum,
  Graph,
  gatherElements,
  gatherRows,
  type LoweredProgram,
  lessOrEqual,
  max,
  min,
  mul,
  pad,
  reduceMax,
  reduceSum,
  reshape,
  softmax,
  sub,
  topK,
  type Value,
} from '@loopwright/graph';
import type { ModelConfig } from '../models/config.js';
import { headWeightName } from '../models/weight-names.js';
import { constantsOf, type SamplingFiles } from './constants.js';
import { lowRank, lowRankInputs } from './low-rank.js';

export const headKinds = ['draw', 'scaled', 'greedy', 'logits'] as const;
export type HeadKind = (typeof headKinds)[number];

/** Width of a block: two scans of some hundreds for a vocabulary of 50,000. */
const blockWidth = 128;

/**
 * Probabilities [B, V] in blocks [B, M, W], padded with zeros. The runtime adds up numbers in an order that depends on where in
 * memory they begin, so that rows of, say, 300 would get other last bits beside other rows; blocks of 128 begin alike.
 */
function blocksOf(probabilities: Value, V: number): Value {
  const M = Math.ceil(V / blockWidth);
  return reshape(pad(probabilities, 1, 0, M * blockWidth - V), ['B', M, blockWidth]);
}

/** The last of [B, M] growing sums, [B, 1]. */
function lastOf(cumulative: Value): Value {
  return reduceMax(cumulative, [1], { keepDims: true });
}

/** Just below 1 in float32: what is scaled by it stays below a sum that rounding may have made a little smaller. */
const almostOne = 1 - 2 ** -23;

/**
 * Index [B, 1] of the first position whose cumulative sum exceeds the threshold [B, 1]. The threshold is kept between 0 and the last
 * sum, so that rounding at the border of a block never chooses a token of probability 0.
 */
function firstAbove(cumulative: Value, threshold: Value): Value {
  const { graph } = cumulative;
  const inside = max(min(threshold, mul(lastOf(cumulative), graph.scalar(almostOne))), graph.scalar(0));
  return reduceSum(cast(lessOrEqual(cumulative, inside), 'int64'), [1], { keepDims: true });
}

/** Token [B, 1] that a uniform number u [B, 1] falls on. */
function draw(probabilities: Value, u: Value, V: number): Value {
  const blocks = blocksOf(probabilities, V);
  const sums = reduceSum(blocks, [2]);
  const cumulative = cumSum(sums, 1);
  const threshold = mul(u, lastOf(cumulative));
  const block = firstAbove(cumulative, threshold);
  const before = sub(gatherElements(cumulative, block), gatherElements(sums, block));
  const inside = firstAbove(cumSum(gatherRows(blocks, block), 1), sub(threshold, before));
  return add(mul(block, u.graph.constant(BigInt64Array.of(BigInt(blockWidth)), [])), inside);
}

/** Inputs: `hidden` [B,D]; where the head has an adapter `head.A` [P,16,D], `head.B` [V,16·P]; `u` [B,1] for the draws, `inverse_temperature` [B,1] for `scaled`. Outputs: `token` int64 [B,1] and its `probability` [B,1] at temperature 1, or `logits` [B,V]. */
export function buildHeadGraph(
  config: ModelConfig,
  files: SamplingFiles,
  { kind, adapted }: { readonly kind: HeadKind; readonly adapted: boolean },
): LoweredProgram {
  const { hiddenSize: D, vocabSize: V } = config;
  const graph = new Graph();
  const hidden = graph.input('hidden', 'float32', ['B', D]);
  const base = constantsOf(graph, files).product(hidden, headWeightName(config));
  const adapter = () => lowRankInputs(graph, { name: (part) => `head.${part}`, blocks: 'P', inner: D, out: V });
  const logits = adapted ? add(base, lowRank(hidden, adapter())) : base;
  if (kind === 'logits') return compile(graph, { logits });

  // The runtime's softmax goes row by row. Its exponential and logarithm of whole arrays do not: a number's last bit depends on its
  // place among the others. So the logarithm is left to the caller.
  const plain = softmax(logits);
  const result = (token: Value) => compile(graph, { token, probability: gatherElements(plain, token) });
  if (kind === 'greedy') return result(topK(logits, 1).indices);
  const u = graph.input('u', 'float32', ['B', 1]);
  if (kind === 'draw') return result(draw(plain, u, V));
  const inverseTemperature = graph.input('inverse_temperature', 'float32', ['B', 1]);
  return result(draw(softmax(mul(logits, inverseTemperature)), u, V));
}
