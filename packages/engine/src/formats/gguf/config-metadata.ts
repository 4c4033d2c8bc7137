/** The metadata that a GGUF file has of a model's config. */
import { complaint } from '@loopwright/protocol';
import { architectures } from '../../local/models/architectures.js';
import type { ModelConfig } from '../../local/models/config.js';
import type { TypedValue } from './header-writer.js';

/** Numbers of what most tensors are, by the type of the file. */
const fileTypes = { f16: 1, q8_0: 7 } as const;

export type GgufType = keyof typeof fileTypes;

/** What files can be written as. */
export const ggufTypes = Object.keys(fileTypes) as readonly GgufType[]; // The keys of a constant.

/**
 * Tokens that the file may be used with: where layers see a window alone, which the file can't say, no more than the window, since
 * up to there it makes no difference.
 */
export function ggufContextLength({ contextLength, slidingWindow }: ModelConfig): number {
  return Math.min(contextLength, slidingWindow?.tokens ?? contextLength);
}

/** @throws `unsupported_model` for an architecture that isn't written to GGUF files */
export function configMetadata(
  config: ModelConfig,
  { name, type }: { readonly name: string; readonly type: GgufType },
): Map<string, TypedValue> {
  const { gguf } = architectures[config.architecture];
  if (gguf === null) {
    const written = Object.entries(architectures).filter(([, facts]) => facts.gguf !== null);
    throw complaint({
      code: 'unsupported_model',
      field: 'model_type',
      expected: `${written.map(([key]) => key).join(', ')} for a GGUF file`,
      got: config.architecture,
      remedy: 'export it as a merged directory',
    });
  }
  const uint32 = (value: number): TypedValue => ({ type: 'uint32', value });
  const float32 = (value: number): TypedValue => ({ type: 'float32', value });
  const string = (value: string): TypedValue => ({ type: 'string', value });
  const at = (key: string) => `${gguf.name}.${key}`;
  return new Map<string, TypedValue>([
    ['general.architecture', string(gguf.name)],
    ['general.type', string('model')],
    ['general.name', string(name)],
    ['general.file_type', uint32(fileTypes[type])],
    ['general.quantization_version', uint32(2)],
    [at('block_count'), uint32(config.layers)],
    [at('context_length'), uint32(ggufContextLength(config))],
    [at('embedding_length'), uint32(config.hiddenSize)],
    [at('feed_forward_length'), uint32(config.intermediateSize)],
    [at('attention.head_count'), uint32(config.heads)],
    [at('attention.head_count_kv'), uint32(config.kvHeads)],
    [at('attention.key_length'), uint32(config.headDim)],
    [at('attention.value_length'), uint32(config.headDim)],
    [at('attention.layer_norm_rms_epsilon'), float32(config.rmsNormEps)],
    [at('rope.dimension_count'), uint32(config.headDim)],
    [at('rope.freq_base'), float32(config.ropeTheta)],
    [at('vocab_size'), uint32(config.vocabSize)],
  ]);
}
