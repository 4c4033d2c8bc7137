/**
 * What sets the supported architectures apart, one row each. All are decoder stacks of RMSNorm, RoPE attention and a gated MLP.
 * How to add one: docs/guides/add-an-architecture.md.
 */

export interface ArchitectureFacts {
  /** The class that transformers names in `architectures` for the language model proper. */
  readonly causalClass: string;
  /** Biases on q, k and v: always, never, or where the config says `attention_bias` (then on o as well). */
  readonly attentionBias: 'qkv' | 'config' | 'never';
  /** RMSNorm over each head of q and k, before RoPE. */
  readonly qkNorm: boolean;
  /** `head_dim` where the config doesn't state it: a number, or hidden size / heads. */
  readonly defaultHeadDim: number | 'hidden / heads';
  /**
   * Layers that see a window of the last `sliding_window` tokens alone: none; `off` where the engine runs such models only while
   * `use_sliding_window` is off; all of them; or those that `layer_types` names, with a RoPE base of their own.
   */
  readonly slidingLayers: 'none' | 'off' | 'all' | 'by type';
  /** The activation of the MLP's gate, by the names that configs have for it. */
  readonly activation: { readonly field: string; readonly name: 'silu' | 'gelu_pytorch_tanh' };
  /** What is added to the stored weight of every RMSNorm. */
  readonly normOffset: 0 | 1;
  /** A norm after attention and one after the MLP, before each is added to the stream, besides those before them. */
  readonly postNorms: boolean;
  /** Embeddings are multiplied by √(hidden size), and scores by 1/√`query_pre_attn_scalar` in place of 1/√(head width). */
  readonly scaledEmbeddings: boolean;
  /**
   * The config scales embeddings (`embedding_multiplier`), scores (`attention_multiplier`, in place of 1/√(head width)), what attention and MLP
   * add to the stream (`residual_multiplier`) and logits (by 1/`logits_scaling`).
   */
  readonly multipliers: boolean;
  /** `tie_word_embeddings` where the config doesn't state it. */
  readonly tiedByDefault: boolean;
  /** In GGUF files: the name of the architecture, and whether rotary pairs are neighbouring rows there. Null where none are read or written. */
  readonly gguf: { readonly name: string; readonly interleaved: boolean } | null;
}

const llama = {
  causalClass: 'LlamaForCausalLM',
  attentionBias: 'config',
  qkNorm: false,
  defaultHeadDim: 'hidden / heads',
  slidingLayers: 'none',
  activation: { field: 'hidden_act', name: 'silu' },
  normOffset: 0,
  postNorms: false,
  scaledEmbeddings: false,
  multipliers: false,
  tiedByDefault: false,
  gguf: { name: 'llama', interleaved: true },
} as const satisfies ArchitectureFacts;

/** Keyed by `model_type`. */
export const architectures = {
  llama,
  qwen2: {
    ...llama,
    causalClass: 'Qwen2ForCausalLM',
    attentionBias: 'qkv',
    slidingLayers: 'off',
    gguf: { name: 'qwen2', interleaved: false },
  },
  qwen3: {
    ...llama,
    causalClass: 'Qwen3ForCausalLM',
    qkNorm: true,
    defaultHeadDim: 128,
    slidingLayers: 'off',
    gguf: { name: 'qwen3', interleaved: false },
  },
  granite: { ...llama, causalClass: 'GraniteForCausalLM', multipliers: true, gguf: null },
  mistral: { ...llama, causalClass: 'MistralForCausalLM', attentionBias: 'never', slidingLayers: 'all' },
  gemma3_text: {
    ...llama,
    causalClass: 'Gemma3ForCausalLM',
    qkNorm: true,
    defaultHeadDim: 256,
    slidingLayers: 'by type',
    activation: { field: 'hidden_activation', name: 'gelu_pytorch_tanh' },
    normOffset: 1,
    postNorms: true,
    scaledEmbeddings: true,
    tiedByDefault: true,
    gguf: null,
  },
} as const satisfies Record<string, ArchitectureFacts>;

export type Architecture = keyof typeof architectures;
