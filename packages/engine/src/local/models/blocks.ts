/** The parts of a layer that architectures have in kinds: norms, the activation, which layers see a window. */
import { add, mul, quickGelu, rmsNorm, sigmoid, type Value } from '@loopwright/graph';
import type { ModelConfig } from './config.js';

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

function scaled(x: Value, scale: number): Value {
  return scale === 1 ? x : mul(x, x.graph.scalar(scale));
}

/** Looked-up embeddings as the first layer sees them. */
export function scaleEmbeddings(x: Value, { embeddingScale }: ModelConfig): Value {
  return scaled(x, embeddingScale);
}

/** What attention or MLP computed, as it is added to the stream. */
export function scaleResidual(x: Value, { residualScale }: ModelConfig): Value {
  return scaled(x, residualScale);
}

/** The norm after the last layer. Logits are scaled here, where it costs the width and not the vocabulary. */
export function lastNorm(x: Value, weight: Value, config: ModelConfig): Value {
  return scaled(norm(x, weight, config), config.logitScale);
}

/** The norm before the MLP. */
export function mlpNormName({ postNorms }: ModelConfig): string {
  return postNorms ? 'pre_feedforward_layernorm.weight' : 'post_attention_layernorm.weight';
}

/** Whether a layer sees a window of the last tokens alone. */
export function slides({ slidingWindow }: ModelConfig, layer: number): boolean {
  return slidingWindow?.layers[layer] === true;
}
