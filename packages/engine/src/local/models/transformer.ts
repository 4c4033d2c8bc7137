/**
 * The decoder-only transformer on whole sequences, as an array program.
 *
 * B batch, S tokens in blocks of Q, D hidden width, H heads, K key/value heads, G = H/K heads that share one, d head width.
 */
import {
  add,
  concat,
  type Dim,
  type Graph,
  gather,
  matMul,
  mul,
  product,
  type RotaryTables,
  recompute,
  reshape,
  rotaryEmbedding,
  slice,
  softmax,
  split,
  stopGradient,
  transpose,
  type Value,
} from '@loopwright/graph';
import type { TargetModule } from '@loopwright/protocol';
import { activation, lastNorm, mlpNormName, norm, scaleEmbeddings, scaleResidual, slides } from './blocks.js';
import type { ModelConfig } from './config.js';
import { blockMasks, parts } from './mask.js';
import { type SequenceForm, sequenceLength } from './sequence-form.js';

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
  /** int64 [B, S], where a row holds several sequences; see {@link blockMasks}. */
  readonly segments?: Value;
  readonly form: SequenceForm;
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

interface Heads {
  readonly kvHeads: number;
  readonly groups: number;
  readonly headDim: number;
  /** Of the scores. */
  readonly scale: number;
}

interface AttentionOptions {
  readonly masks: readonly Value[];
  readonly heads: Heads;
  readonly form: SequenceForm;
}

/**
 * Attention of queries [B, S, K·G·d] to `keys` and `values` [B, K, S, d] under {@link blockMasks}, block by block → [B·S, K·G·d].
 */
function attention(
  queries: Value,
  { keys, values }: LayerCache,
  { masks, heads: { kvHeads: K, groups: G, headDim: d, scale }, form }: AttentionOptions,
): Value {
  const B = queries.shape[0]!;
  const { blocks } = form;
  const byBlock = parts(transpose(reshape(queries, [B, blocks, 'Q', K, G, d]), [1, 0, 3, 4, 2, 5]), 0);
  const [keysUpTo, valuesUpTo] = [keys, values].map((x) => upTo(reshape(x, [B, K, blocks, 'Q', d]), form)) as [
    Cut,
    Cut,
  ]; // two of two
  const mix = (block: Value, i: number) => {
    const [seen, size] = [product([i + 1, 'Q']), product([G, 'Q'])];
    const scores = matMul(reshape(block, [B, K, size, d]), keysUpTo(i), { transposeB: true, alpha: scale });
    const weights = softmax(add(reshape(scores, [B, K, G, 'Q', seen]), masks[i]!));
    return reshape(matMul(reshape(weights, [B, K, size, seen]), valuesUpTo(i)), [1, B, K, G, 'Q', d]);
  };
  const { graph } = queries;
  const mixed = byBlock.map((block, i) => (form.attention ? recompute(graph, () => mix(block, i)) : mix(block, i)));
  return reshape(transpose(concat(mixed, 0), [1, 0, 4, 2, 3, 5]), [product([B, sequenceLength(form)]), K * G * d]);
}

/** Keys or values of the blocks up to one [B, K, (i+1)·Q, d]. */
type Cut = (i: number) => Value;

/**
 * Of keys or values by block [B, K, blocks, Q, d]. Where attention is computed again they are cut from the whole, so that a block has
 * three gradients to give and not one for each block that it sees; else from blocks, of which fewer are added up.
 */
function upTo(x: Value, { blocks, attention }: SequenceForm): Cut {
  const [B, K, , Q, d] = x.shape as [Dim, Dim, Dim, Dim, Dim]; // as given
  const joined = (seen: Value, i: number) => reshape(seen, [B, K, product([i + 1, Q]), d]);
  if (attention) return (i) => joined(slice(x, 2, 0, i + 1), i);
  const cut = split(x, 2, new Array<number>(blocks).fill(1));
  return (i) => joined(concat(cut.slice(0, i + 1), 2), i);
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
  const { form } = inputs;
  const S = sequenceLength(form);
  const rows = product(['B', S]);
  const normHeads = (x: Value, count: number, name: string) =>
    reshape(norm(reshape(x, [rows, count, d]), weights(name), config), ['B', S, count * d]);

  const embedded = reshape(gather(stopGradient(weights('model.embed_tokens.weight')), inputs.ids), [rows, D]);
  const everything = blockMasks(inputs, form);
  const window = slidingWindow === null ? everything : blockMasks(inputs, form, slidingWindow.tokens);
  const caches: LayerCache[] = [];
  const runLayer = (x: Value, layer: number): Value => {
    const name = (rest: string) => layerName(layer, rest);
    const normed = norm(x, weights(name('input_layernorm.weight')), config);
    const after = (y: Value, module: string) =>
      scaleResidual(config.postNorms ? norm(y, weights(name(module)), config) : y, config);
    const project = (module: 'q_proj' | 'k_proj' | 'v_proj', count: number) =>
      reshape(linear(normed, layer, module), ['B', S, count * d]);
    let q = project('q_proj', H);
    let k = project('k_proj', K);
    const v = project('v_proj', K);
    if (config.qkNorm) {
      q = normHeads(q, H, name('self_attn.q_norm.weight'));
      k = normHeads(k, K, name('self_attn.k_norm.weight'));
    }
    q = rotaryEmbedding(q, H, inputs.rotary(layer));
    k = rotaryEmbedding(k, K, inputs.rotary(layer));
    const toHeads = (y: Value) => transpose(reshape(y, ['B', S, K, d]), [0, 2, 1, 3]);
    const cache = { keys: toHeads(k), values: toHeads(v) };
    caches.push(cache);
    const masks = slides(config, layer) ? window : everything;
    const attended = linear(attention(q, cache, { masks, heads, form }), layer, 'o_proj');
    const between = add(x, after(attended, 'post_attention_layernorm.weight'));
    const normedAfter = norm(between, weights(name(mlpNormName(config))), config);
    const gate = activation(linear(normedAfter, layer, 'gate_proj'), config);
    const fed = linear(mul(gate, linear(normedAfter, layer, 'up_proj')), layer, 'down_proj');
    return add(between, after(fed, 'post_feedforward_layernorm.weight'));
  };
  let x = scaleEmbeddings(embedded, config);
  for (let layer = 0; layer < layers; layer++)
    x = form.layers ? recompute(x.graph, () => runLayer(x, layer)) : runLayer(x, layer);
  return { embedded, hidden: lastNorm(x, weights('model.norm.weight'), config), caches };
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
