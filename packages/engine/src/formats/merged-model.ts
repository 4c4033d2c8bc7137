/** Whole models as Hugging Face directories, in float32: an adapter folded into its base, weights held in memory, or a model as it is. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { linearModules, type WeightSpec, weightSpecs } from '../local/models/weight-names.js';
import { type AdapterWeights, addLowRankProduct, requireAdapterFits } from './adapter.js';
import {
  asWriteError,
  throwIfCancelled,
  type WriteOptions,
  writeFileAtomically,
  writeJsonAtomically,
} from './atomic-file.js';
import type { ModelSource } from './model-source.js';
import { elementCount } from './numbers.js';
import { writeSafetensors } from './safetensors.js';
import { requireWeight } from './weights-file.js';

/** Files beside the weights that a model needs to be used; those that the base has are copied. */
const companionFiles = [
  'generation_config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'tokenizer.model',
  'special_tokens_map.json',
  'added_tokens.json',
  'vocab.json',
  'merges.txt',
  'chat_template.jinja',
  'chat_template.json',
  'LICENSE',
] as const;

export interface WriteModelOptions extends WriteOptions {
  /** Above this the weights are split into shards with an index; 2 GB by default. */
  readonly maxShardBytes?: number;
}

const defaultMaxShardBytes = 2_000_000_000;

/**
 * A base with an adapter folded in (W + scale · B·A), computed as its tensors are read. An adapter on the `lm_head` of a model with
 * tied embeddings gives an untied one, since the embedding itself stays as it was. It reads from the base, which stays the caller's.
 *
 * @throws `checkpoint_mismatch` when the adapter does not fit the base
 */
export function mergeAdapter(base: ModelSource, adapter: AdapterWeights): ModelSource {
  requireAdapterFits(adapter, base.config);
  const modules = linearModules(base.config, adapter.targetModules);
  const pairOf = new Map(modules.map(({ key, path }) => [`${path}.weight`, adapter.tensors.get(key)]));
  const untie = base.config.tiedEmbeddings && pairOf.has('lm_head.weight');
  const config = untie ? { ...base.config, tiedEmbeddings: false } : base.config;
  return {
    directory: base.directory,
    config,
    rawConfig: untie ? { ...base.rawConfig, tie_word_embeddings: false } : base.rawConfig,
    specs: weightSpecs(config),
    sources: base.sources,
    files: base.files,
    read: async (name, options) => {
      const source = untie && name === 'lm_head.weight' ? 'model.embed_tokens.weight' : name;
      const values = await base.read(source, options);
      const pair = pairOf.get(name);
      if (pair !== undefined) await addLowRankProduct(values, { ...pair, scale: adapter.scale });
      return values;
    },
    [Symbol.asyncDispose]: async () => undefined,
  };
}

/**
 * Writes weights held in memory with the config and the companion files of the model they were trained from.
 *
 * @param directory made where there is none
 * @param weights by the names of Hugging Face files; every tensor of the base's architecture
 * @returns the names of the files written, weights first
 * @throws `invalid_argument` for a tensor that is missing or of another length; `disk_full`, `cancelled`
 */
export async function writeFullModel(
  directory: string,
  { base, weights }: { readonly base: ModelSource; readonly weights: ReadonlyMap<string, Float32Array> },
  options: WriteModelOptions = {},
): Promise<readonly string[]> {
  const specs = new Map(base.specs.map((spec) => [spec.name, spec]));
  for (const spec of base.specs) requireWeight(weights, spec);
  const read = async (name: string) => requireWeight(weights, specs.get(name)!); // Asked for what the specs name.
  const { config, rawConfig, files } = base;
  return writeModelDirectory(directory, { config, rawConfig, files, specs: base.specs, read }, options);
}

/**
 * Writes a whole model in float32 as a Hugging Face directory with its tokenizer; one tensor at a time is in memory.
 *
 * @param directory made where there is none
 * @returns the names of the files written, weights first
 * @throws `model_invalid` as ModelSource.read does, `unsupported_model` for a GGUF file's tokenizer that isn't read;
 *   `disk_full`, `cancelled`
 */
export async function writeModelDirectory(
  directory: string,
  model: Pick<ModelSource, 'config' | 'rawConfig' | 'files' | 'specs' | 'read'>,
  { maxShardBytes = defaultMaxShardBytes, ...options }: WriteModelOptions = {},
): Promise<readonly string[]> {
  const { specs } = model;
  const readOptions = options.signal === undefined ? {} : { signal: options.signal };
  try {
    await mkdir(directory, { recursive: true });
  } catch (error) {
    throw asWriteError(error, directory);
  }
  const shards = splitIntoShards(specs, maxShardBytes);
  const files: string[] = [];
  const weightMap: Record<string, string> = {};
  for (const [i, shard] of shards.entries()) {
    const file =
      shards.length === 1 ? 'model.safetensors' : `model-${count(i + 1)}-of-${count(shards.length)}.safetensors`;
    const tensors = shard.map(({ name, shape }) => ({ name, shape, data: () => model.read(name, readOptions) }));
    await writeSafetensors(join(directory, file), tensors, options);
    files.push(file);
    for (const { name } of shard) weightMap[name] = file;
  }
  if (shards.length > 1) {
    const file = 'model.safetensors.index.json';
    const index = { metadata: { total_size: totalBytes(specs) }, weight_map: weightMap };
    await writeJsonAtomically(join(directory, file), index, options);
    files.push(file);
  }
  for (const file of companionFiles) {
    throwIfCancelled(options.signal, directory);
    const bytes = await model.files.read(file);
    if (bytes === undefined) continue;
    await writeFileAtomically(join(directory, file), (append) => append(bytes), options);
    files.push(file);
  }
  // Last: a directory without it is no model, so an interrupted save is not taken for one.
  await writeJsonAtomically(join(directory, 'config.json'), inFloat32(model.rawConfig), options);
  files.push('config.json');
  return files;
}

function splitIntoShards(specs: readonly WeightSpec[], maxShardBytes: number): readonly (readonly WeightSpec[])[] {
  const shards: WeightSpec[][] = [[]];
  let sizeBytes = 0;
  for (const spec of specs) {
    const bytes = 4 * elementCount(spec.shape);
    // A tensor above the limit gets a shard of its own.
    if (sizeBytes > 0 && sizeBytes + bytes > maxShardBytes) {
      shards.push([]);
      sizeBytes = 0;
    }
    shards.at(-1)!.push(spec); // There is always one.
    sizeBytes += bytes;
  }
  return shards;
}

function totalBytes(specs: readonly WeightSpec[]): number {
  return specs.reduce((sum, { shape }) => sum + 4 * elementCount(shape), 0);
}

function count(n: number): string {
  return String(n).padStart(5, '0');
}

/** The config with float32 under whichever name it calls the dtype by; `torch_dtype`, which all readers know, where it has none. */
function inFloat32(config: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { torch_dtype: old, dtype, ...rest } = config;
  return {
    ...rest,
    ...(dtype === undefined ? {} : { dtype: 'float32' }),
    ...(old === undefined && dtype !== undefined ? {} : { torch_dtype: 'float32' }),
  };
}
