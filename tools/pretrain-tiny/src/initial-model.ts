/** The bundled model before it has learnt anything: its shape, and seeded random weights. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TensorToWrite, writeSafetensors } from '@loopwright/engine';
import { createRandom, type Random } from 'loopwright';
import { specialTokenId, tokenizerFiles, vocabulary } from './tokenizer-files.js';

/** A Llama of three layers; 0.45 million parameters. */
export const shape = {
  hiddenSize: 128,
  intermediateSize: 256,
  layers: 3,
  heads: 4,
  kvHeads: 2,
  headDim: 32,
  contextLength: 1024,
} as const;

/** `config.json`. */
export function modelConfig(): Readonly<Record<string, unknown>> {
  return {
    architectures: ['LlamaForCausalLM'],
    model_type: 'llama',
    vocab_size: vocabulary.length,
    hidden_size: shape.hiddenSize,
    intermediate_size: shape.intermediateSize,
    num_hidden_layers: shape.layers,
    num_attention_heads: shape.heads,
    num_key_value_heads: shape.kvHeads,
    head_dim: shape.headDim,
    hidden_act: 'silu',
    max_position_embeddings: shape.contextLength,
    rms_norm_eps: 1e-5,
    rope_theta: 10_000,
    rope_scaling: null,
    tie_word_embeddings: true,
    attention_bias: false,
    mlp_bias: false,
    pad_token_id: specialTokenId('<|pad|>'),
    eos_token_id: specialTokenId('<|eos|>'),
    bos_token_id: null,
    torch_dtype: 'float32',
  };
}

/**
 * Matrices from a normal distribution of standard deviation 0.08 (about 1 / √width), those that write into the residual stream divided by
 * √(2 · layers) as GPT-2 does it; norms are 1. Drawn in the order of the names below, so the seed decides every bit.
 */
export function initialWeights(seed: number): TensorToWrite[] {
  const random = createRandom(seed);
  const { hiddenSize: D, intermediateSize: F, layers, heads, kvHeads, headDim } = shape;
  const into = initialDeviation / Math.sqrt(2 * layers);
  const matrix = (name: string, rows: number, columns: number, deviation: number = initialDeviation) => ({
    name,
    shape: [rows, columns],
    data: normals(random, rows * columns, deviation),
  });
  const norm = (name: string) => ({ name, shape: [D], data: new Float32Array(D).fill(1) });
  const weights: TensorToWrite[] = [matrix('model.embed_tokens.weight', vocabulary.length, D)];
  for (let layer = 0; layer < layers; layer++) {
    const at = `model.layers.${layer}`;
    weights.push(
      norm(`${at}.input_layernorm.weight`),
      matrix(`${at}.self_attn.q_proj.weight`, heads * headDim, D),
      matrix(`${at}.self_attn.k_proj.weight`, kvHeads * headDim, D),
      matrix(`${at}.self_attn.v_proj.weight`, kvHeads * headDim, D),
      matrix(`${at}.self_attn.o_proj.weight`, D, heads * headDim, into),
      norm(`${at}.post_attention_layernorm.weight`),
      matrix(`${at}.mlp.gate_proj.weight`, F, D),
      matrix(`${at}.mlp.up_proj.weight`, F, D),
      matrix(`${at}.mlp.down_proj.weight`, D, F, into),
    );
  }
  weights.push(norm('model.norm.weight'));
  return weights;
}

const initialDeviation = 0.08;

/** Box–Muller, both of a pair used. */
function normals(random: Random, count: number, deviation: number): Float32Array {
  const values = new Float32Array(count);
  for (let i = 0; i < count; i += 2) {
    const radius = deviation * Math.sqrt(-2 * Math.log(1 - random.next()));
    const angle = 2 * Math.PI * random.next();
    values[i] = radius * Math.cos(angle);
    if (i + 1 < count) values[i + 1] = radius * Math.sin(angle);
  }
  return values;
}

/** Writes a model directory that every reader of Hugging Face files takes; made where there is none. */
export async function writeInitialModel(directory: string, { seed }: { readonly seed: number }): Promise<void> {
  await mkdir(directory, { recursive: true });
  const files = { 'config.json': modelConfig(), ...tokenizerFiles({ contextLength: shape.contextLength }) };
  for (const [name, content] of Object.entries(files)) {
    await writeFile(join(directory, name), `${JSON.stringify(content, null, 2)}\n`);
  }
  await writeSafetensors(join(directory, 'model.safetensors'), initialWeights(seed));
}
