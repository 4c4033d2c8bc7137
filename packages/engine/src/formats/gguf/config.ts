/** The config of a model from the metadata of its GGUF file, as a config.json would say it. */
import { basename } from 'node:path';
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { type Architecture, architectures } from '../../local/models/architectures.js';
import { invalidFile } from '../source-file.js';
import type { GgufFile } from './gguf-file.js';
import { checkedMetadata, type Metadata } from './metadata.js';
import { findRopeScaling } from './rope-factors.js';

/** Architectures by the name that GGUF files have for them; of two with one name the first. */
const ggufArchitectures: ReadonlyMap<string, Architecture> = new Map(
  (Object.keys(architectures) as Architecture[]) // The keys of a constant.
    .flatMap((architecture) => {
      const { gguf } = architectures[architecture];
      return gguf === null ? [] : [[gguf.name, architecture] as const];
    })
    .reverse(),
);

export const ropeFactorsTensor = 'rope_freqs.weight';

/**
 * The parsed config.json that this model would have; `parseModelConfig` reads it.
 *
 * @throws `unsupported_model` for an architecture that isn't read, experts, RoPE scaling of other kinds, or a file split in several;
 *   `model_invalid` for missing or malformed metadata. All name the key
 */
export async function ggufConfig(file: GgufFile): Promise<Readonly<Record<string, unknown>>> {
  const metadata = checkedMetadata(file.metadata, file.path);
  refuseSplit(metadata, file.path);
  const name = metadata.string('general.architecture');
  const modelType = ggufArchitectures.get(name);
  if (modelType === undefined) {
    const names = [...ggufArchitectures.keys()].reverse().join(', ');
    throw unsupported(file.path, {
      key: 'general.architecture',
      expected: names,
      got: JSON.stringify(name.slice(0, 80)),
    });
  }
  const at = (key: string) => `${name}.${key}`;
  const experts = metadata.optionalCount(at('expert_count')) ?? 0;
  if (experts > 0) throw unsupported(file.path, { key: at('expert_count'), expected: '0', got: `${experts}` });
  const hiddenSize = metadata.count(at('embedding_length'));
  const heads = metadata.count(at('attention.head_count'));
  const headDim = metadata.optionalCount(at('attention.key_length')) ?? hiddenSize / heads;
  requireEqual(metadata, file.path, [
    { key: at('attention.value_length'), value: headDim },
    { key: at('rope.dimension_count'), value: headDim },
  ]);
  const ropeTheta = metadata.has(at('rope.freq_base')) ? metadata.number(at('rope.freq_base')) : 10_000;
  const [vocabSize = 0] = file.info('token_embd.weight').shape;
  return {
    architectures: [architectures[modelType].causalClass],
    model_type: modelType,
    vocab_size: vocabSize,
    hidden_size: hiddenSize,
    intermediate_size: metadata.count(at('feed_forward_length')),
    num_hidden_layers: metadata.count(at('block_count')),
    num_attention_heads: heads,
    num_key_value_heads: metadata.optionalCount(at('attention.head_count_kv')) ?? heads,
    head_dim: headDim,
    hidden_act: 'silu',
    max_position_embeddings: metadata.count(at('context_length')),
    rms_norm_eps: metadata.number(at('attention.layer_norm_rms_epsilon')),
    rope_theta: ropeTheta,
    rope_scaling: await readRopeScaling(file, { metadata, name, headDim, ropeTheta }),
    tie_word_embeddings: !file.tensors.has('output.weight'),
    attention_bias: file.tensors.has('blk.0.attn_output.bias'),
    bos_token_id: metadata.optionalCount('tokenizer.ggml.bos_token_id') ?? null,
    eos_token_id: endTokens(metadata),
    torch_dtype: 'float32',
  };
}

/** The token that ends a text, then that of a turn and of a message, where they are others. */
function endTokens(metadata: Metadata): number[] {
  const keys = ['eos_token_id', 'eot_token_id', 'eom_token_id'];
  return [...new Set(keys.flatMap((key) => metadata.optionalCount(`tokenizer.ggml.${key}`) ?? []))];
}

async function readRopeScaling(
  file: GgufFile,
  {
    metadata,
    name,
    headDim,
    ropeTheta,
  }: { readonly metadata: Metadata; readonly name: string; readonly headDim: number; readonly ropeTheta: number },
): Promise<Readonly<Record<string, unknown>> | null> {
  const key = `${name}.rope.scaling.type`;
  const type = metadata.optionalString(key) ?? 'none';
  if (type !== 'none') {
    throw unsupported(file.path, { key, expected: 'none', got: JSON.stringify(type.slice(0, 80)) });
  }
  if (!file.tensors.has(ropeFactorsTensor)) return null;
  const factors = await file.readFloat32(ropeFactorsTensor);
  if (factors.length !== headDim / 2) {
    throw invalidFile(file.path, ropeFactorsTensor, `${headDim / 2} values`, `${factors.length}`);
  }
  const scaling = findRopeScaling(factors, { headDim, ropeTheta });
  if (scaling === undefined) {
    const expected = 'the factors of a llama3 scaling';
    throw unsupported(file.path, { key: ropeFactorsTensor, expected, got: 'others' });
  }
  return {
    rope_type: 'llama3',
    factor: scaling.factor,
    low_freq_factor: scaling.lowFreqFactor,
    high_freq_factor: scaling.highFreqFactor,
    original_max_position_embeddings: scaling.originalContext,
  };
}

function refuseSplit(metadata: Metadata, path: string): void {
  const parts = metadata.optionalCount('split.count') ?? 0;
  if (parts <= 1) return;
  throw complaint({
    code: 'unsupported_model',
    field: `${basename(path)}: split.count`,
    expected: 'a model in one file',
    got: `${parts} files`,
    remedy: 'join them with llama-gguf-split --merge',
  });
}

function requireEqual(
  metadata: Metadata,
  path: string,
  facts: readonly { readonly key: string; readonly value: number }[],
): void {
  for (const { key, value } of facts) {
    const found = metadata.optionalCount(key) ?? value;
    if (found !== value) {
      throw unsupported(path, { key, expected: `${value}, the width of a head's keys`, got: `${found}` });
    }
  }
}

function unsupported(
  path: string,
  { key, expected, got }: { readonly key: string; readonly expected: string; readonly got: string },
): LoopwrightError {
  return complaint({
    code: 'unsupported_model',
    field: `${basename(path)}: ${key}`,
    expected,
    got,
    remedy: 'take a model of one of the architectures that are read from GGUF files, or its Hugging Face directory',
  });
}
