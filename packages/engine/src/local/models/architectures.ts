/** What sets the supported architectures apart, one row each. All are decoder stacks of RMSNorm, RoPE attention and SwiGLU. */

export interface ArchitectureFacts {
  /** The class that transformers names in `architectures` for the language model proper. */
  readonly causalClass: string;
  /** Biases on q, k and v: always, or where the config says `attention_bias` (then on o as well). */
  readonly attentionBias: 'qkv' | 'config';
  /** RMSNorm over each head of q and k, before RoPE. */
  readonly qkNorm: boolean;
  /** `head_dim` where the config doesn't state it: a number, or hidden size / heads. */
  readonly defaultHeadDim: number | 'hidden / heads';
  /** Whether the config's `use_sliding_window` means something here. */
  readonly slidingWindow: boolean;
  /** GGUF files hold rotary pairs as neighbouring rows; otherwise as Hugging Face files do. */
  readonly interleavedInGguf: boolean;
}

/** Keyed by `model_type`. */
export const architectures = {
  llama: {
    causalClass: 'LlamaForCausalLM',
    attentionBias: 'config',
    qkNorm: false,
    defaultHeadDim: 'hidden / heads',
    slidingWindow: false,
    interleavedInGguf: true,
  },
  qwen2: {
    causalClass: 'Qwen2ForCausalLM',
    attentionBias: 'qkv',
    qkNorm: false,
    defaultHeadDim: 'hidden / heads',
    slidingWindow: true,
    interleavedInGguf: false,
  },
  qwen3: {
    causalClass: 'Qwen3ForCausalLM',
    attentionBias: 'config',
    qkNorm: true,
    defaultHeadDim: 128,
    slidingWindow: true,
    interleavedInGguf: false,
  },
} as const satisfies Record<string, ArchitectureFacts>;

export type Architecture = keyof typeof architectures;
