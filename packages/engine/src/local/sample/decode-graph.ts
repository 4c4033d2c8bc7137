/**
 * One decoding step as an array program: the newest token of each of B rows against their cached keys and values.
 *
 * Base weights are constants (the runtime packs them once: 1.44 times the speed), the adapter is an input. The past is an input
 * too, since feeding copies nothing while fetching copies: only the new keys and values come out, as one array.
 * T cached positions (padded), K key/value heads, G query heads a key head, d head width, D hidden width.
 */
import {
  add,
  compile,
  concat,
  Graph,
  gather,
  type LoweredProgram,
  matMul,
  mul,
  reshape,
  rotaryEmbedding,
  softmax,
  split,
  type Value,
} from '@loopwright/graph';
import { activation, lastNorm, mlpNormName, norm, scaleEmbeddings, scaleResidual, slides } from '../models/blocks.js';
import type { ModelConfig } from '../models/config.js';
import { pastWindowMask } from '../models/mask.js';
import { layerRotary } from '../models/rope.js';
import { layerName } from '../models/transformer.js';
import { constantsOf, type SamplingFiles } from './constants.js';
import { fusedInput } from './fused-adapter.js';
import { lowRank, lowRankInputs, versionedLowRank, versionedLowRankInputs } from './low-rank.js';

export const pastInput = (layer: number, part: 'keys' | 'values') => `past.${layer}.${part}`;

/** `versions`: those of several versions, each row with its own. */
export type DecodeAdapters = 'none' | 'one' | 'versions';

/**
 * Inputs: `ids` and `positions` int64 [B,1], `mask` [B,1,1,T], the past [B,K,T,d] by layer; with `one` adapter the fused one, with those of
 * `versions` a stack of fused ones, `version_rows` int64 [V,R] and `version_place` int64 [B]. Outputs: `hidden` [B,D] after the last norm,
 * `rows` [B, 2·layers, K·d].
 */
export function buildDecodeGraph(
  config: ModelConfig,
  files: SamplingFiles,
  { adapters }: { readonly adapters: DecodeAdapters },
): LoweredProgram {
  const { hiddenSize: D, heads: H, kvHeads: K, headDim: d, layers, intermediateSize, slidingWindow } = config;
  const G = H / K;
  const graph = new Graph();
  const { weight: constant, widths, product: byWeight } = constantsOf(graph, files);
  const ids = graph.input('ids', 'int64', ['B', 1]);
  const positions = graph.input('positions', 'int64', ['B', 1]);
  const mask = graph.input('mask', 'float32', ['B', 1, 1, 'T']);
  const window = slidingWindow === null ? mask : pastWindowMask(mask, positions, slidingWindow.tokens);
  const rotary = layerRotary(graph, config, positions);
  const places =
    adapters === 'versions'
      ? {
          rows: graph.input('version_rows', 'int64', ['V', 'R']),
          place: graph.input('version_place', 'int64', ['B']),
        }
      : undefined;

  const linear = (x: Value, layer: number, group: string, weight: string, bias: boolean): Value => {
    const name = group === 'qkv' || group === 'gate_up' ? `layers.${layer}.${group}` : layerName(layer, weight);
    const weightName = group === 'qkv' || group === 'gate_up' ? name : `${name}.weight`;
    const [out, inner] = widths(weightName);
    const base = byWeight(x, weightName);
    const inputName = (part: 'A' | 'B') => fusedInput(layer, group, part);
    const form = { name: inputName, blocks: `P_${group}`, inner, out };
    const adapted = () =>
      places === undefined
        ? lowRank(x, lowRankInputs(graph, form))
        : versionedLowRank(x, versionedLowRankInputs(graph, form), places);
    const y = adapters === 'none' ? base : add(base, adapted());
    return bias ? add(y, constant(`${name}.bias`)) : y;
  };
  const normHeads = (x: Value, heads: number, name: string) =>
    reshape(norm(reshape(x, ['B', heads, d]), constant(name), config), ['B', 1, heads * d]);

  let x = scaleEmbeddings(reshape(gather(constant('model.embed_tokens.weight'), ids), ['B', D]), config);
  const rows: Value[] = [];
  for (let layer = 0; layer < layers; layer++) {
    const weight = (name: string) => constant(layerName(layer, name));
    const after = (y: Value, name: string) =>
      scaleResidual(config.postNorms ? norm(y, weight(name), config) : y, config);
    const normed = norm(x, weight('input_layernorm.weight'), config);
    const [q0, k0, v0] = split(linear(normed, layer, 'qkv', '', config.qkvBias), 1, [H * d, K * d, K * d]);
    let q = reshape(q0!, ['B', 1, H * d]);
    let k = reshape(k0!, ['B', 1, K * d]);
    if (config.qkNorm) {
      q = normHeads(q, H, layerName(layer, 'self_attn.q_norm.weight'));
      k = normHeads(k, K, layerName(layer, 'self_attn.k_norm.weight'));
    }
    q = rotaryEmbedding(q, H, rotary(layer));
    k = rotaryEmbedding(k, K, rotary(layer));
    const v = reshape(v0!, ['B', 1, K * d]);
    rows.push(k, v);
    const pastKeys = graph.input(pastInput(layer, 'keys'), 'float32', ['B', K, 'T', d]);
    const pastValues = graph.input(pastInput(layer, 'values'), 'float32', ['B', K, 'T', d]);
    const queries = reshape(q, ['B', K, G, d]);
    const alpha = config.attentionScale;
    const seen = slides(config, layer) ? window : mask;
    const pastScores = add(matMul(queries, pastKeys, { transposeB: true, alpha }), seen);
    const ownScore = matMul(queries, reshape(k, ['B', K, 1, d]), { transposeB: true, alpha });
    const [past, own] = split(softmax(concat([pastScores, ownScore], 3)), 3, ['T', 1]);
    const mixed = add(matMul(past!, pastValues), matMul(own!, reshape(v, ['B', K, 1, d])));
    const attended = linear(reshape(mixed, ['B', H * d]), layer, 'o', 'self_attn.o_proj', config.attentionBias);
    x = add(x, after(attended, 'post_attention_layernorm.weight'));
    const normedAfter = norm(x, weight(mlpNormName(config)), config);
    const [gate, up] = split(linear(normedAfter, layer, 'gate_up', '', false), 1, [intermediateSize, intermediateSize]);
    const fed = linear(mul(activation(gate!, config), up!), layer, 'down', 'mlp.down_proj', false);
    x = add(x, after(fed, 'post_feedforward_layernorm.weight'));
  }
  const hidden = lastNorm(x, constant('model.norm.weight'), config);
  return compile(graph, { hidden, rows: concat(rows, 1) });
}
