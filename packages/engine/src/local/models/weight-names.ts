/** Every tensor of a model: its name in Hugging Face files, its shape and its part, in the order in which weights files hold them. */
import type { TargetModule } from '@loopwright/protocol';
import type { ModelConfig } from './config.js';

export type WeightRole = 'embed' | 'linear' | 'norm' | 'bias' | 'head';

export interface WeightSpec {
  /** As in the model's safetensors files, such as `model.layers.0.self_attn.q_proj.weight`. */
  readonly name: string;
  /** Linear weights are [out, in]. */
  readonly shape: readonly number[];
  readonly role: WeightRole;
  /** From 0; absent outside the stack. */
  readonly layer?: number;
  /** `q_proj`, `input_layernorm`, `embed_tokens`, … ; a bias has the module of its weight. */
  readonly module: string;
  /** Neighbours of one name lie back to back in a weights file and can be read as one tensor, such as `layers.0.qkv`. */
  readonly fused?: string;
}

/** Tensors of the whole model; without `lm_head.weight` where the embedding is used twice. */
export function weightSpecs(config: ModelConfig): readonly WeightSpec[] {
  const { vocabSize, hiddenSize, layers, tiedEmbeddings } = config;
  const embedding: WeightSpec = {
    name: 'model.embed_tokens.weight',
    shape: [vocabSize, hiddenSize],
    role: 'embed',
    module: 'embed_tokens',
  };
  const norm: WeightSpec = { name: 'model.norm.weight', shape: [hiddenSize], role: 'norm', module: 'norm' };
  const head: WeightSpec = {
    name: 'lm_head.weight',
    shape: [vocabSize, hiddenSize],
    role: 'head',
    module: 'lm_head',
  };
  return [
    embedding,
    ...Array.from({ length: layers }, (_, layer) => layerSpecs(config, layer)).flat(),
    norm,
    ...(tiedEmbeddings ? [] : [head]),
  ];
}

/** Name of the output projection's weight: the embedding itself where they are tied. */
export function headWeightName({ tiedEmbeddings }: ModelConfig): string {
  return tiedEmbeddings ? 'model.embed_tokens.weight' : 'lm_head.weight';
}

export interface FusedGroup {
  readonly name: string;
  readonly members: readonly string[];
}

/** The linear layers of a layer by what they read: the decoder reads those of a group as one matrix, and their adapters are stacked. */
export const fusedGroups: readonly FusedGroup[] = [
  { name: 'qkv', members: ['q_proj', 'k_proj', 'v_proj'] },
  { name: 'o', members: ['o_proj'] },
  { name: 'gate_up', members: ['gate_proj', 'up_proj'] },
  { name: 'down', members: ['down_proj'] },
];

/** A linear layer that can carry an adapter. */
export interface LinearModule {
  /** `layers.0.q_proj`, or `lm_head`. */
  readonly key: string;
  readonly module: TargetModule;
  readonly layer?: number;
  /** Path in the model as transformers names it, without `.weight`: `model.layers.0.self_attn.q_proj`. */
  readonly path: string;
  readonly inFeatures: number;
  readonly outFeatures: number;
}

/** The linear layers of these kinds, layer by layer, `lm_head` last. With tied embeddings `lm_head` is there too, though it has no tensor of its own. */
export function linearModules(config: ModelConfig, modules: readonly TargetModule[]): readonly LinearModule[] {
  const linears = weightSpecs(config).flatMap(({ name, shape, role, layer, module }): LinearModule[] => {
    const target = modules.find((wanted) => wanted === module);
    const [outFeatures, inFeatures] = shape;
    if (role !== 'linear' || layer === undefined || target === undefined) return [];
    if (outFeatures === undefined || inFeatures === undefined) return [];
    const path = name.slice(0, -'.weight'.length);
    return [{ key: `layers.${layer}.${module}`, module: target, layer, path, inFeatures, outFeatures }];
  });
  const { hiddenSize, vocabSize } = config;
  return modules.includes('lm_head')
    ? [
        ...linears,
        { key: 'lm_head', module: 'lm_head', path: 'lm_head', inFeatures: hiddenSize, outFeatures: vocabSize },
      ]
    : linears;
}

function layerSpecs(config: ModelConfig, layer: number): readonly WeightSpec[] {
  const { hiddenSize, intermediateSize, heads, kvHeads, headDim, qkvBias, attentionBias, qkNorm, postNorms } = config;
  const queryWidth = heads * headDim;
  const keyWidth = kvHeads * headDim;
  const at = `model.layers.${layer}`;

  const norm = (module: string, size: number, parent = ''): WeightSpec => ({
    name: `${at}.${parent}${module}.weight`,
    shape: [size],
    role: 'norm',
    layer,
    module,
  });
  const linear = (path: string, shape: readonly [number, number], fused?: string): WeightSpec => ({
    name: `${at}.${path}.weight`,
    shape,
    role: 'linear',
    layer,
    module: path.slice(path.indexOf('.') + 1),
    ...(fused === undefined ? {} : { fused: `layers.${layer}.${fused}` }),
  });
  const bias = (path: string, size: number, fused?: string): WeightSpec => ({
    name: `${at}.${path}.bias`,
    shape: [size],
    role: 'bias',
    layer,
    module: path.slice(path.indexOf('.') + 1),
    ...(fused === undefined ? {} : { fused: `layers.${layer}.${fused}.bias` }),
  });

  return [
    norm('input_layernorm', hiddenSize),
    linear('self_attn.q_proj', [queryWidth, hiddenSize], 'qkv'),
    linear('self_attn.k_proj', [keyWidth, hiddenSize], 'qkv'),
    linear('self_attn.v_proj', [keyWidth, hiddenSize], 'qkv'),
    ...(qkvBias
      ? [
          bias('self_attn.q_proj', queryWidth, 'qkv'),
          bias('self_attn.k_proj', keyWidth, 'qkv'),
          bias('self_attn.v_proj', keyWidth, 'qkv'),
        ]
      : []),
    ...(qkNorm ? [norm('q_norm', headDim, 'self_attn.'), norm('k_norm', headDim, 'self_attn.')] : []),
    linear('self_attn.o_proj', [hiddenSize, queryWidth]),
    ...(attentionBias ? [bias('self_attn.o_proj', hiddenSize)] : []),
    norm('post_attention_layernorm', hiddenSize),
    ...(postNorms
      ? [norm('pre_feedforward_layernorm', hiddenSize), norm('post_feedforward_layernorm', hiddenSize)]
      : []),
    linear('mlp.gate_proj', [intermediateSize, hiddenSize], 'gate_up'),
    linear('mlp.up_proj', [intermediateSize, hiddenSize], 'gate_up'),
    linear('mlp.down_proj', [hiddenSize, intermediateSize]),
  ];
}
