/** A model that the Tinker conformance run trains: two layers of random weights, a vocabulary of 2,048, and a tokenizer that any client loads. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TensorToWrite, writeSafetensors } from '@loopwright/engine';

const shape = {
  vocab_size: 2048,
  hidden_size: 64,
  intermediate_size: 128,
  num_hidden_layers: 2,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 16,
  max_position_embeddings: 512,
} as const;
const specialTokens = ['<|unk|>', '<|bos|>', '<|eos|>'];
const characters = ['\n', ...Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i))];

/** @returns the directory, which is made */
export async function makeModel(directory: string): Promise<string> {
  await mkdir(directory, { recursive: true });
  await writeJson(join(directory, 'config.json'), {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    ...shape,
    hidden_act: 'silu',
    rms_norm_eps: 1e-5,
    rope_theta: 10_000,
    tie_word_embeddings: true,
    attention_bias: false,
    mlp_bias: false,
    bos_token_id: 1,
    eos_token_id: 2,
    torch_dtype: 'float32',
  });
  await writeTokenizer(directory);
  await writeSafetensors(join(directory, 'model.safetensors'), weights());
  return directory;
}

/** Characters, then words that text never gives: a sample's ids all decode. */
async function writeTokenizer(directory: string): Promise<void> {
  const known = [...specialTokens, ...characters];
  const words = Array.from({ length: shape.vocab_size - known.length }, (_, i) => `w${i + known.length}`);
  const added = specialTokens.map((content, id) => ({
    ...{ id, content, special: true, normalized: false },
    ...{ single_word: false, lstrip: false, rstrip: false },
  }));
  await writeJson(join(directory, 'tokenizer.json'), {
    version: '1.0',
    added_tokens: added,
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: { type: 'Fuse' },
    model: {
      type: 'BPE',
      unk_token: '<|unk|>',
      vocab: Object.fromEntries([...known, ...words].map((token, id) => [token, id])),
      merges: [],
    },
  });
  await writeJson(join(directory, 'tokenizer_config.json'), {
    tokenizer_class: 'PreTrainedTokenizerFast',
    model_max_length: shape.max_position_embeddings,
    clean_up_tokenization_spaces: false,
    bos_token: '<|bos|>',
    eos_token: '<|eos|>',
    unk_token: '<|unk|>',
  });
}

function weights(): TensorToWrite[] {
  const { hidden_size: width, intermediate_size: inner, head_dim: head } = shape;
  const [queries, keys] = [shape.num_attention_heads * head, shape.num_key_value_heads * head];
  const random = gaussians(17);
  const matrix = (name: string, rows: number, columns: number): TensorToWrite => ({
    name: `${name}.weight`,
    shape: [rows, columns],
    data: Float32Array.from({ length: rows * columns }, () => random() / Math.sqrt(columns)),
  });
  const norm = (name: string): TensorToWrite => ({
    name: `${name}.weight`,
    shape: [width],
    data: new Float32Array(width).fill(1),
  });
  const layers = Array.from({ length: shape.num_hidden_layers }, (_, index) => {
    const at = `model.layers.${index}`;
    return [
      norm(`${at}.input_layernorm`),
      matrix(`${at}.self_attn.q_proj`, queries, width),
      matrix(`${at}.self_attn.k_proj`, keys, width),
      matrix(`${at}.self_attn.v_proj`, keys, width),
      matrix(`${at}.self_attn.o_proj`, width, queries),
      norm(`${at}.post_attention_layernorm`),
      matrix(`${at}.mlp.gate_proj`, inner, width),
      matrix(`${at}.mlp.up_proj`, inner, width),
      matrix(`${at}.mlp.down_proj`, width, inner),
    ];
  });
  return [matrix('model.embed_tokens', shape.vocab_size, width), ...layers.flat(), norm('model.norm')];
}

/** Normally distributed numbers (Box and Muller) from a linear congruential generator: the same on every machine. */
function gaussians(seed: number): () => number {
  let state = seed;
  const uniform = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return (state + 0.5) / 2 ** 32;
  };
  return () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform());
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFile(path, `${JSON.stringify(value, null, 2)}\n`);
}
