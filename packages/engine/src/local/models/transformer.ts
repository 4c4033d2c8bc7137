/**
 * The decoder-only transformer of Llama, Qwen2 and Qwen3 on whole sequences, as an array program.
 *
 * B batch, S tokens, D hidden width, H heads, K key/value heads, G = H/K heads that share one, d head width.
 */
import {
  add,
  type Graph,
  gather,
  matMul,
  mul,
  product,
  type RotaryTables,
  reshape,
  rmsNorm,
  rotaryEmbedding,
  sigmoid,
  softmax,
  stopGradient,
  transpose,
  type Value,
} from '@loopwright/graph';
import type { TargetModule } from '@loopwright/protocol';
import type { ModelConfig } from './config.js';

/** A weight by its name in the model's files. */
export type Weights = (name: string) => Value;
/** x [N, in] → [N, out] by the linear layer, its adapter included. */
export type Linear = (x: Value, layer: number, module: Exclude<TargetModule, 'lm_head'>) => Value;

export interface SequenceInputs {
  /** int64 [B, S]. */
  readonly ids: Value;
  readonly rotary: RotaryTables;
  /** [S, S]: 0 where a token may look, a large negative number elsewhere. */
  readonly mask: Value;
}

export interface LayerCache {
  /** [B, K, S, d], positions already rotated in. */
  readonly keys: Value;
  readonly values: Value;
}

export interface SequenceOutputs {
  /** Rows of the embedding table, [B·S, D]; the gradient of a trained embedding is taken here. */
  readonly embedded: Value;
  /** After the last norm, [B·S, D]. */
  readonly hidden: Value;
  readonly caches: readonly LayerCache[];
}

export const layerName = (layer: number, rest: string) => `model.layers.${layer}.${rest}`;

export function silu(x: Value): Value {
  return mul(x, sigmoid(x));
}

/** Runs the model over whole sequences with causal attention. */
export function sequenceModel(
  config: ModelConfig,
  weights: Weights,
  linear: Linear,
  inputs: SequenceInputs,
): SequenceOutputs {
  const { hiddenSize: D, heads: H, kvHeads: K, headDim: d, layers, rmsNormEps } = config;
  const G = H / K;
  const rows = 'B*S';
  const normHeads = (x: Value, heads: number, name: string) =>
    reshape(rmsNorm(reshape(x, [rows, heads, d]), weights(name), rmsNormEps), ['B', 'S', heads * d]);

  const embedded = reshape(gather(stopGradient(weights('model.embed_tokens.weight')), inputs.ids), [rows, D]);
  const caches: LayerCache[] = [];
  let x = embedded;
  for (let layer = 0; layer < layers; layer++) {
    const name = (rest: string) => layerName(layer, rest);
    const normed = rmsNorm(x, weights(name('input_layernorm.weight')), rmsNormEps);
    const project = (module: 'q_proj' | 'k_proj' | 'v_proj', heads: number) =>
      reshape(linear(normed, layer, module), ['B', 'S', heads * d]);
    let q = project('q_proj', H);
    let k = project('k_proj', K);
    const v = project('v_proj', K);
    if (config.qkNorm) {
      q = normHeads(q, H, name('self_attn.q_norm.weight'));
      k = normHeads(k, K, name('self_attn.k_norm.weight'));
    }
    q = rotaryEmbedding(q, H, inputs.rotary);
    k = rotaryEmbedding(k, K, inputs.rotary);
    const queries = reshape(transpose(reshape(q, ['B', 'S', K, G, d]), [0, 2, 3, 1, 4]), [
      'B',
      K,
      product([G, 'S']),
      d,
    ]);
    const toHeads = (y: Value) => transpose(reshape(y, ['B', 'S', K, d]), [0, 2, 1, 3]);
    const [keys, values] = [toHeads(k), toHeads(v)];
    caches.push({ keys, values });
    const scores = reshape(matMul(queries, keys, { transposeB: true, alpha: 1 / Math.sqrt(d) }), ['B', K, G, 'S', 'S']);
    const attention = reshape(softmax(add(scores, inputs.mask)), ['B', K, product([G, 'S']), 'S']);
    const mixed = reshape(matMul(attention, values), ['B', K, G, 'S', d]);
    x = add(x, linear(reshape(transpose(mixed, [0, 3, 1, 2, 4]), [rows, H * d]), layer, 'o_proj'));
    const normedAfter = rmsNorm(x, weights(name('post_attention_layernorm.weight')), rmsNormEps);
    const gate = silu(linear(normedAfter, layer, 'gate_proj'));
    x = add(x, linear(mul(gate, linear(normedAfter, layer, 'up_proj')), layer, 'down_proj'));
  }
  return { embedded, hidden: rmsNorm(x, weights('model.norm.weight'), rmsNormEps), caches };
}

/** W·x (+ bias): weights of linear layers are stored [out, in]. */
export function plainLinear(x: Value, weight: Value, bias?: Value): Value {
  const y = matMul(x, weight, { transposeB: true });
  return bias === undefined ? y : add(y, bias);
}

const attentionModules: readonly string[] = ['q_proj', 'k_proj', 'v_proj', 'o_proj'];

/** Name of a linear layer without `.weight`, such as `model.layers.3.mlp.up_proj`. */
export function moduleName(layer: number, module: Exclude<TargetModule, 'lm_head'>): string {
  return layerName(layer, `${attentionModules.includes(module) ? 'self_attn' : 'mlp'}.${module}`);
}

export function hasBias(config: ModelConfig, module: TargetModule): boolean {
  if (module === 'o_proj') return config.attentionBias;
  return config.qkvBias && (module === 'q_proj' || module === 'k_proj' || module === 'v_proj');
}

/** Name of the output projection's weight: the embedding itself where they are tied. */
export function headWeightName({ tiedEmbeddings }: ModelConfig): string {
  return tiedEmbeddings ? 'model.embed_tokens.weight' : 'lm_head.weight';
}

/** Declares a weight as an input of the graph at its first use, so that weights stay one array shared by every program. */
export function weightInputs(graph: Graph, shapes: (name: string) => readonly number[]): Weights {
  const declared = new Map<string, Value>();
  return (name) => {
    let value = declared.get(name);
    if (value === undefined) {
      value = graph.input(name, 'float32', shapes(name));
      declared.set(name, value);
    }
    return value;
  };
}
