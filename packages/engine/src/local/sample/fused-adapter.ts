/**
 * An adapter in the form that decoding takes: for each matrix that the decoder reads as one (q, k and v; gate and up), the A sides
 * stacked (padded to blocks of 16) and the B sides block-diagonal, with the scale alpha/rank multiplied into B. Layers that an adapter
 * leaves out get zeros, so that one program, with its own packed copy of the base weights, serves every adapter of a base model.
 */
import { targetModules } from '@loopwright/protocol';
import type { Tensor } from 'onnxruntime-node';
import type { AdapterWeights, LowRankPair } from '../../formats/adapter.js';
import type { ModelConfig } from '../models/config.js';
import { fusedGroups, linearModules } from '../models/weight-names.js';
import type { Feeds, TensorFactory } from '../ort/runtime.js';
import { paddedRank, rankBlock } from './low-rank.js';

export const fusedInput = (layer: number, group: string, part: 'A' | 'B') => `fused.${layer}.${group}.${part}`;

export interface FusedAdapter {
  /** Without an adapter the programs are others, which have no place for one: a product by zeros takes as long as one by numbers. */
  readonly isAdapted: boolean;
  /** By {@link fusedInput}; empty without an adapter. */
  readonly decode: Feeds;
  /** A (in blocks) and B of the head, where it has an adapter: zeros there would cost a product over the whole vocabulary. */
  readonly head: { readonly A: Tensor; readonly B: Tensor } | undefined;
}

export function fuseAdapter(
  config: ModelConfig,
  adapter: AdapterWeights | undefined,
  tensors: TensorFactory,
): FusedAdapter {
  if (adapter === undefined) return { isAdapted: false, decode: {}, head: undefined };
  const modules = new Map(linearModules(config, targetModules).map((m) => [m.key, m]));
  const { rank } = adapter;
  const decode: Feeds = {};
  for (let layer = 0; layer < config.layers; layer++) {
    for (const { name, members } of fusedGroups) {
      const parts = members.map((member) => modules.get(`layers.${layer}.${member}`)!);
      const inFeatures = parts[0]!.inFeatures;
      const outFeatures = parts.reduce((sum, part) => sum + part.outFeatures, 0);
      const width = paddedRank(rank * parts.length);
      const A = new Float32Array(width * inFeatures);
      const B = new Float32Array(outFeatures * width);
      let row = 0;
      parts.forEach((part, i) => {
        const pair = adapter.tensors.get(part.key);
        if (pair !== undefined) {
          A.set(pair.A, i * rank * inFeatures);
          for (let o = 0; o < part.outFeatures; o++) {
            for (let r = 0; r < rank; r++) B[(row + o) * width + i * rank + r] = adapter.scale * pair.B[o * rank + r]!;
          }
        }
        row += part.outFeatures;
      });
      decode[fusedInput(layer, name, 'A')] = tensors.float(A, [width / rankBlock, rankBlock, inFeatures]);
      decode[fusedInput(layer, name, 'B')] = tensors.float(B, [outFeatures, width]);
    }
  }
  const pair = adapter.tensors.get('lm_head');
  return {
    isAdapted: true,
    decode,
    head: pair === undefined ? undefined : headAdapter(config, adapter, pair, tensors),
  };
}

function headAdapter(
  { hiddenSize, vocabSize }: ModelConfig,
  { rank, scale }: AdapterWeights,
  pair: LowRankPair,
  tensors: TensorFactory,
): FusedAdapter['head'] {
  const width = paddedRank(rank);
  const [A, B] = [new Float32Array(width * hiddenSize), new Float32Array(vocabSize * width)];
  A.set(pair.A);
  for (let o = 0; o < vocabSize; o++) for (let r = 0; r < rank; r++) B[o * width + r] = scale * pair.B[o * rank + r]!;
  return {
    A: tensors.float(A, [width / rankBlock, rankBlock, hiddenSize]),
    B: tensors.float(B, [vocabSize, width]),
  };
}
