/** Writes a whole model as a Hugging Face directory, in float32: an adapter folded into its base, or weights held in memory. */
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
 * Folds an adapter into its base (W + scale · B·A) and writes the result; one tensor at a time is in memory. An adapter on the
 * `lm_head` of a model with tied embeddings gives an untied one, since the embedding itself stays as it was.
 *
 * @param directory made where there is none
 * @returns the names of the files written, weights first
 * @throws `checkpoint_mismatch` when the adapter does not fit the base; `model_invalid` as ModelSource.read does;
 *   `disk_full`, `cancelled`
 */
export async function writeMergedModel(
  directory: string,
  { base, adapter }: { readonly base: ModelSource; readonly adapter: AdapterWeights },
  options: WriteModelOptions = {},
): Promise<readonly string[]> {
  requireAdapterFits(adapter, base.config);
  const modules = linearModules(base.config, adapter.targetModules);
  const pairOf = new Map(modules.map(({ key, path }) => [`${path}.weight`, adapter.tensors.get(key)]));
  const untie = base.config.tiedEmbeddings && pairOf.has('lm_head.weight');
  const specs = untie ? weightSpecs({ ...base.config, tiedEmbeddings: false }) : base.specs;
  const readOptions = options.signal === undefined ? {} : { signal: options.signal };
  const read = async ({ name }: WeightSpec) => {
    const source = untie && name === 'lm_head.weight' ? 'model.embed_tokens.weight' : name;
    const values = await base.read(source, readOptions);
    const pair = pairOf.get(name);
    if (pair !== undefined) await addLowRankProduct(values, { ...pair, scale: adapter.scale });
    return values;
  };
  const config = untie ? { ...base.rawConfig, tie_word_embeddings: false } : base.rawConfig;
  return writeModel(directory, { base, specs, read, config }, options);
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
  for (const spec of base.specs) requireWeight(weights, spec);
  const read = async (spec: WeightSpec) => requireWeight(weights, spec);
  return writeModel(directory, { base, specs: base.specs, read, config: base.rawConfig }, options);
}

interface ModelToWrite {
  readonly base: ModelSource;
  readonly specs: readonly WeightSpec[];
  readonly read: (spec: WeightSpec) => Promise<Float32Array>;
  readonly config: Readonly<Record<string, unknown>>;
}

async function writeModel(
  directory: string,
  { base, specs, read, config }: ModelToWrite,
  { maxShardBytes = defaultMaxShardBytes, ...options }: WriteModelOptions,
): Promise<readonly string[]> {
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
    const tensors = shard.map((spec) => ({ name: spec.name, shape: spec.shape, data: () => read(spec) }));
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
    const bytes = await base.files.read(file);
    if (bytes === undefined) continue;
    await writeFileAtomically(join(directory, file), (append) => append(bytes), options);
    files.push(file);
  }
  // Last: a directory without it is no model, so an interrupted save is not taken for one.
  await writeJsonAtomically(join(directory, 'config.json'), inFloat32(config), options);
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
