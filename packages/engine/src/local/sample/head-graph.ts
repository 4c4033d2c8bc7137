/**
 * From hidden states to the next token: the output projection and a way to choose, as array programs of their own,
 * so that rows with different ways share the decoding step.
 *
 * - `draw`: an exact draw from the softmax at temperature 1 by a uniform number u: the first token whose cumulative probability
 *   exceeds u, found in two levels (blocks of tokens by their sums, then inside the block) to keep the scan short
 * - `scaled`: the same from logits / temperature; the log-probability returned is still that of temperature 1
 * - `greedy`: the likeliest token
 * - `logits`: all of them, for truncation outside
 * B rows, D hidden width, V vocabulary, M blocks of W tokens (M·W = V).
 */
import { basename } from 'node:path';
import {
  add,
  cast,
  compile,
  cumSum,
  exp,
  Graph,
  gatherElements,
  gatherRows,
  type LoweredProgram,
  lessOrEqual,
  log,
  matMul,
  max,
  min,
  mul,
  reduceMax,
  reduceSum,
  reshape,
  sub,
  topK,
  type Value,
} from '@loopwright/graph';
import type { WeightsFile } from '../../formats/weights-file.js';
import type { ModelConfig } from '../models/config.js';
import { headWeightName } from '../models/transformer.js';

export const headKinds = ['draw', 'scaled', 'greedy', 'logits'] as const;
export type HeadKind = (typeof headKinds)[number];

/** Width of a block: the divisor of the vocabulary that is nearest to 128; the whole vocabulary where none lies within 16 to 2048. */
export function blockWidth(vocabSize: number): number {
  let best = vocabSize;
  for (let width = 16; width <= 2048; width++) {
    if (vocabSize % width === 0 && Math.abs(Math.log(width / 128)) < Math.abs(Math.log(best / 128))) best = width;
  }
  return best;
}

interface Weighed {
  /** exp(logit − max), [B, M, W]. */
  readonly weights: Value;
  /** logit − max, [B, M, W]. */
  readonly shifted: Value;
}

function weigh(blocks: Value): Weighed {
  const shifted = sub(blocks, reduceMax(blocks, [1, 2], { keepDims: true }));
  return { weights: exp(shifted), shifted };
}

/** Just below 1 in float32: what is scaled by it stays below a sum that rounding may have made a little smaller. */
const almostOne = 1 - 2 ** -23;

/**
 * Index [B, 1] of the first position whose cumulative sum exceeds the threshold [B, 1]. The threshold is kept between 0 and the last
 * sum, so that rounding at the border of a block never chooses a token of probability 0.
 */
function firstAbove(cumulative: Value, threshold: Value): Value {
  const { graph } = cumulative;
  const last = reduceMax(cumulative, [1], { keepDims: true });
  const inside = max(min(threshold, mul(last, graph.scalar(almostOne))), graph.scalar(0));
  return reduceSum(cast(lessOrEqual(cumulative, inside), 'int64'), [1], { keepDims: true });
}

function draw(weights: Value, u: Value): { readonly block: Value; readonly inside: Value } {
  const sums = reduceSum(weights, [2]);
  const cumulative = cumSum(sums, 1);
  const threshold = mul(u, reduceMax(cumulative, [1], { keepDims: true }));
  const block = firstAbove(cumulative, threshold);
  const before = sub(gatherElements(cumulative, block), gatherElements(sums, block));
  const inside = firstAbove(cumSum(gatherRows(weights, block), 1), sub(threshold, before));
  return { block, inside };
}

/** Inputs: `hidden` [B,D], `head.A` [R,D], `head.B` [V,R]; `u` [B,1] for the draws, `inverse_temperature` [B,1,1] for `scaled`. Outputs: `token` int64 [B,1] and `logprob` [B,1], or `logits` [B,V]. */
export function buildHeadGraph(config: ModelConfig, file: WeightsFile, kind: HeadKind): LoweredProgram {
  const { hiddenSize: D, vocabSize: V } = config;
  const graph = new Graph();
  const name = headWeightName(config);
  const place = file.tensors.get(name);
  if (place === undefined) throw new Error(`the weights file has no ${name}`);
  const hidden = graph.input('hidden', 'float32', ['B', D]);
  const A = graph.input('head.A', 'float32', ['R', D]);
  const B = graph.input('head.B', 'float32', [V, 'R']);
  const base = matMul(hidden, graph.externalConstant(name, place.shape, place.offset), { transposeB: true });
  const logits = add(base, matMul(matMul(hidden, A, { transposeB: true }), B, { transposeB: true }));
  const options = { weightsFile: basename(file.path) };
  if (kind === 'logits') return compile(graph, { logits }, options);

  const W = blockWidth(V);
  const M = V / W;
  const plain = weigh(reshape(logits, ['B', M, W]));
  const logTotal = log(reduceSum(plain.weights, [1, 2])); // [B]
  if (kind === 'greedy') {
    const { values, indices } = topK(reshape(plain.shifted, ['B', V]), 1);
    return compile(graph, { token: indices, logprob: sub(values, reshape(logTotal, ['B', 1])) }, options);
  }
  const u = graph.input('u', 'float32', ['B', 1]);
  const weights =
    kind === 'draw'
      ? plain.weights
      : weigh(mul(reshape(logits, ['B', M, W]), graph.input('inverse_temperature', 'float32', ['B', 1, 1]))).weights;
  const { block, inside } = draw(weights, u);
  const token = add(mul(block, graph.constant(BigInt64Array.of(BigInt(W)), [])), inside);
  const shifted = gatherElements(gatherRows(plain.shifted, block), inside);
  return compile(graph, { token, logprob: sub(shifted, reshape(logTotal, ['B', 1])) }, options);
}
