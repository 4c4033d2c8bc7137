/**
 * The decoder-only transformer on whole sequences, as an array program.
 *
 * B batch, S tokens in blocks of Q, D hidden width, H heads, K key/value heads, G = H/K heads that share one, d head width.
 */
import {
  add,
  concat,
  type Graph,
  gather,
  matMul,
  mul,
  product,
  type RotaryTables,
  reshape,
  rotaryEmbedding,
  softmax,
  split,
  staticDim,
  stopGradient,
  transpose,
  type Value,
} from '@loopwright/graph';
import type { TargetModule } from '@loopwright/protocol';
import { activation, mlpNormName, norm, scaleEmbeddings, slides, windowMask } from './blocks.js';
import type { ModelConfig } from './config.js';

/** A weight by its name in the model's files. */
export type Weights = (name: string) => Value;
/** x [N, in] → [N, out] by the linear layer, its adapter included. */
export type Linear = (x: Value, layer: number, module: Exclude<TargetModule, 'lm_head'>) => Value;

export interface SequenceInputs {
  /** int64 [B, S]. */
  readonly ids: Value;
  /** int64 [B, S], of the tokens in their sequence. */
  readonly positions: Value;
  /** By layer. */
  readonly rotary: (layer: number) => RotaryTables;
  /** [B, S, S]: 0 where a token may look, a large negative number elsewhere, and always after the token itself. */
  readonly mask: Value;
}

/**
 * A sequence is cut into this many blocks of queries, each of which is multiplied with the keys up to its own end alone: three eighths
 * of the scores of causal attention are never computed. Lengths are multiples of it.
 */
export const queryBlocks = 4;
/** Tokens that a sequence is padded to: whole blocks of queries, and whole multiples. */
export function paddedLength(tokens: number, multiple: number): number {
  const step = Math.ceil(multiple / queryBlocks) * queryBlocks;
  return Math.ceil(tokens / step) * step;
}

/** S, the length of a sequence, by Q, the length of a block. */
export const sequenceLength = product([queryBlocks, 'Q']);

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

/** Equal parts of an axis of that many positions, the axis left out. */
function parts(x: Value, axis: number): readonly Value[] {
  const sizes = new Array<number>(staticDim(x.shape, axis)).fill(1);
  return split(x, axis, sizes).map((part) => reshape(part, [...x.shape.slice(0, axis), ...x.shape.slice(axis + 1)]));
}

/** The mask of each block of queries [B, 1, 1, Q, (i+1)·Q], for the keys up to its end. */
function blockMasks(mask: Value): Value[] {
  const B = mask.shape[0]!;
  return parts(reshape(mask, [B, queryBlocks, 'Q', sequenceLength]), 1).map((block, i) => {
    const keyBlocks = parts(reshape(block, [B, 'Q', queryBlocks, 'Q']), 2).slice(0, i + 1);
    const seen = concat(
      keyBlocks.map((part) => reshape(part, [B, 'Q', 1, 'Q'])),
      2,
    );
    return reshape(seen, [B, 1, 1, 'Q', product([i + 1, 'Q'])]);
  });
}

interface Heads {
  readonly kvHeads: number;
  readonly groups: number;
  readonly headDim: number;
  /** Of the scores. */
  readonly scale: number;
}

/**
 * Attention of queries [B, S, K·G·d] to `keys` and `values` [B, K, S, d] under {@link blockMasks}, block by block → [B·S, K·G·d].
 */
function attention(
  queries: Value,
  { keys, values }: LayerCache,
  { masks, heads: { kvHeads: K, groups: G, headDim: d, scale } }: { masks: readonly Value[]; heads: Heads },
): Value {
  const B = queries.shape[0]!;
  const blocks = reshape(queries, [B, queryBlocks, 'Q', K, G, d]);
  const byBlock = parts(transpose(blocks, [1, 0, 3, 4, 2, 5]), 0);
  const cut = (x: Value) => split(reshape(x, [B, K, queryBlocks, 'Q', d]), 2, new Array<number>(queryBlocks).fill(1));
  const [keyBlocks, valueBlocks] = [cut(keys), cut(values)];
  const upTo = (all: readonly Value[], i: number) =>
    reshape(concat(all.slice(0, i + 1), 2), [B, K, product([i + 1, 'Q']), d]);
  const mixed = byBlock.map((block, i) => {
    const [seen, size] = [product([i + 1, 'Q']), product([G, 'Q'])];
    const scores = matMul(reshape(block, [B, K, size, d]), upTo(keyBlocks, i), {
      transposeB: true,
      alpha: scale,
    });
    const weights = softmax(add(reshape(scores, [B, K, G, 'Q', seen]), masks[i]!));
    return reshape(matMul(reshape(weights, [B, K, size, seen]), upTo(valueBlocks, i)), [1, B, K, G, 'Q', d]);
  });
  return reshape(transpose(concat(mixed, 0), [1, 0, 4, 2, 3, 5]), [product([B, sequenceLength]), K * G * d]);
}

/** Runs the model over whole sequences with causal attention. */
export function sequenceModel(
  config: ModelConfig,
  weights: Weights,
  linear: Linear,
  inputs: SequenceInputs,
): SequenceOutputs {
  const { hiddenSize: D, heads: H, kvHeads: K, headDim: d, layers, slidingWindow } = config;
  const heads: Heads = { kvHeads: K, groups: H / K, headDim: d, scale: config.attentionScale };
  const rows = product(['B', sequenceLength]);
  const normHeads = (x: Value, count: number, name: string) =>
    reshape(norm(reshape(x, [rows, count, d]), weights(name), config), ['B', sequenceLength, count * d]);

  const embedded = reshape(gather(stopGradient(weights('model.embed_tokens.weight')), inputs.ids), [rows, D]);
  const everything = blockMasks(inputs.mask);
  const window =
    slidingWindow === null ? everything : blockMasks(windowMask(inputs.mask, inputs.positions, slidingWindow.tokens));
  const caches: LayerCache[] = [];
  let x = scaleEmbeddings(embedded, config);
  for (let layer = 0; layer < layers; layer++) {
    const name = (rest: string) => layerName(layer, rest);
    const normed = norm(x, weights(name('input_layernorm.weight')), config);
    const after = (y: Value, module: string) => (config.postNorms ? norm(y, weights(name(module)), config) : y);
    const project = (module: 'q_proj' | 'k_proj' | 'v_proj', count: number) =>
      reshape(linear(normed, layer, module), ['B', sequenceLength, count * d]);
    let q = project('q_proj', H);
    let k = project('k_proj', K);
    const v = project('v_proj', K);
    if (config.qkNorm) {
      q = normHeads(q, H, name('self_attn.q_norm.weight'));
      k = normHeads(k, K, name('self_attn.k_norm.weight'));
    }
    q = rotaryEmbedding(q, H, inputs.rotary(layer));
    k = rotaryEmbedding(k, K, inputs.rotary(layer));
    const toHeads = (y: Value) => transpose(reshape(y, ['B', sequenceLength, K, d]), [0, 2, 1, 3]);
    const cache = { keys: toHeads(k), values: toHeads(v) };
    caches.push(cache);
    const masks = slides(config, layer) ? window : everything;
    const attended = linear(attention(q, cache, { masks, heads }), layer, 'o_proj');
    x = add(x, after(attended, 'post_attention_layernorm.weight'));
    const normedAfter = norm(x, weights(name(mlpNormName(config))), config);
    const gate = activation(linear(normedAfter, layer, 'gate_proj'), config);
    const fed = linear(mul(gate, linear(normedAfter, layer, 'up_proj')), layer, 'down_proj');
    x = add(x, after(fed, 'post_feedforward_layernorm.weight'));
  }
  return { embedded, hidden: norm(x, weights('model.norm.weight'), config), caches };
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
