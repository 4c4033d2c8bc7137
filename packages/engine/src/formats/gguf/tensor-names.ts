/** Names of tensors in GGUF files, from those in Hugging Face files. */
import { complaint } from '@loopwright/protocol';

const outside: Readonly<Record<string, string>> = {
  'model.embed_tokens': 'token_embd',
  'model.norm': 'output_norm',
  lm_head: 'output',
};

const inLayer: Readonly<Record<string, string>> = {
  input_layernorm: 'attn_norm',
  'self_attn.q_proj': 'attn_q',
  'self_attn.k_proj': 'attn_k',
  'self_attn.v_proj': 'attn_v',
  'self_attn.o_proj': 'attn_output',
  'self_attn.q_norm': 'attn_q_norm',
  'self_attn.k_norm': 'attn_k_norm',
  post_attention_layernorm: 'ffn_norm',
  'mlp.gate_proj': 'ffn_gate',
  'mlp.up_proj': 'ffn_up',
  'mlp.down_proj': 'ffn_down',
};

/** `blk.3.attn_q.weight` for `model.layers.3.self_attn.q_proj.weight`. @throws `invalid_argument` for a name that models here don't have */
export function ggufTensorName(name: string): string {
  const [, path = '', part = ''] = /^(.*)\.(weight|bias)$/.exec(name) ?? [];
  const [, layer, module = ''] = /^model\.layers\.(\d+)\.(.+)$/.exec(path) ?? [];
  const found = layer === undefined ? outside[path] : inLayer[module];
  if (found === undefined) {
    throw complaint({ field: name, expected: 'the name of a tensor that GGUF files have', got: 'another' });
  }
  return `${layer === undefined ? '' : `blk.${layer}.`}${found}.${part}`;
}
