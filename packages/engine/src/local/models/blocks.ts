/** The parts of a layer that architectures have in kinds: norms, the activation, and windows of attention. */
import {
  add,
  cast,
  cumSum,
  expandLike,
  lessOrEqual,
  mul,
  quickGelu,
  reshape,
  rmsNorm,
  sigmoid,
  sub,
  type Value,
} from '@loopwright/graph';
import type { ModelConfig } from './config.js';
import { maskedOut } from './mask.js';

/** RMSNorm over the last axis; the stored weight may be the distance from 1. */
export function norm(x: Value, weight: Value, { normOffset, rmsNormEps }: ModelConfig): Value {
  return rmsNorm(x, normOffset === 0 ? weight : add(weight, weight.graph.scalar(normOffset)), rmsNormEps);
}

/** The activation of the MLP's gate. */
export function activation(x: Value, { hiddenAct }: ModelConfig): Value {
  return hiddenAct === 'silu' ? quickGelu(x, 1) : geluTanh(x);
}

/**
 * x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))), by (1 + tanh(y))/2 = sigmoid(2y).
 *
 * @see arXiv:1606.08415, the approximation
 */
function geluTanh(x: Value): Value {
  const number = (value: number) => x.graph.scalar(value);
  const factor = 2 * Math.sqrt(2 / Math.PI);
  const slope = add(number(factor), mul(number(factor * 0.044715), mul(x, x)));
  return mul(x, sigmoid(mul(x, slope)));
}

/** Looked-up embeddings as the first layer sees them. */
export function scaleEmbeddings(x: Value, { embeddingScale }: ModelConfig): Value {
  return embeddingScale === 1 ? x : mul(x, x.graph.scalar(embeddingScale));
}

/** The norm before the MLP. */
export function mlpNormName({ postNorms }: ModelConfig): string {
  return postNorms ? 'pre_feedforward_layernorm.weight' : 'post_attention_layernorm.weight';
}

/** Whether a layer sees a window of the last tokens alone. */
export function slides({ slidingWindow }: ModelConfig, layer: number): boolean {
  return slidingWindow?.layers[layer] === true;
}

/** A large negative number where key positions lie `tokens` or more before query positions, 0 elsewhere. Both of float32. */
function beyondWindow(queries: Value, keys: Value, tokens: number): Value {
  const far = cast(lessOrEqual(queries.graph.scalar(tokens), sub(queries, keys)), 'float32');
  return mul(far, queries.graph.scalar(maskedOut));
}

/** A mask [B, S, S] of whole sequences, narrowed to the window. @param positions int64 [B, S], of the tokens in their sequence */
export function windowMask(mask: Value, positions: Value, tokens: number): Value {
  const [B, S] = [mask.shape[0]!, mask.shape[1]!];
  const at = cast(positions, 'float32');
  return add(mask, beyondWindow(reshape(at, [B, S, 1]), reshape(at, [B, 1, S]), tokens));
}

/** A mask [B, 1, 1, T] of cached tokens, of which the one at t has position t, narrowed to the window. @param positions int64 [B, 1], of the newest tokens */
export function pastWindowMask(mask: Value, positions: Value, tokens: number): Value {
  const one = mask.graph.scalar(1);
  const keys = sub(cumSum(expandLike(one, mask), 3), one);
  return add(mask, beyondWindow(reshape(cast(positions, 'float32'), [mask.shape[0]!, 1, 1, 1]), keys, tokens));
}
