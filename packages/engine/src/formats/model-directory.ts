/** A model as Hugging Face lays it out: config.json beside model.safetensors, or beside an index and its shards. */
import { readdir, readFile, realpath, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import { type ModelConfig, parseModelConfig } from '../local/models/config.js';
import { type WeightSpec, weightSpecs } from '../local/models/weight-names.js';
import { errorCode, throwIfCancelled } from './atomic-file.js';
import { checkTensors, missingTensor, requireFinite } from './check-tensors.js';
import { DirectoryFiles } from './directory-files.js';
import type { ModelFiles, ModelSource, SourceFile } from './model-source.js';
import { SafetensorsFile } from './safetensors.js';

const singleFile = 'model.safetensors';
const indexFile = 'model.safetensors.index.json';

/** Above any published config or index (the largest index is a few MB). */
const maxJsonBytes = 64 * 1024 * 1024;

/**
 * A model directory with its weight files open. Everything but the values has been checked: all tensors of the architecture
 * are there, with the right shapes, and no unknown ones. Close it with `await using`.
 */
export class ModelDirectory implements ModelSource {
  readonly directory: string;
  readonly config: ModelConfig;
  readonly rawConfig: Readonly<Record<string, unknown>>;
  readonly specs: readonly WeightSpec[];
  readonly sources: readonly SourceFile[];
  readonly files: ModelFiles;
  readonly #files: readonly SafetensorsFile[];
  readonly #fileOf: ReadonlyMap<string, SafetensorsFile>;

  private constructor(parts: {
    directory: string;
    config: ModelConfig;
    rawConfig: Readonly<Record<string, unknown>>;
    sources: readonly SourceFile[];
    files: readonly SafetensorsFile[];
    fileOf: ReadonlyMap<string, SafetensorsFile>;
  }) {
    this.directory = parts.directory;
    this.config = parts.config;
    this.rawConfig = parts.rawConfig;
    this.specs = weightSpecs(parts.config);
    this.sources = parts.sources;
    this.files = new DirectoryFiles(parts.directory);
    this.#files = parts.files;
    this.#fileOf = parts.fileOf;
  }

  /**
   * Opens a model directory and checks it, values apart.
   *
   * @throws `unknown_model` when there is no such directory; `unsupported_model` as parseModelConfig does; `model_invalid` for a
   *   missing or unreadable file, a shard that is missing or cut, a tensor that is missing, unknown or of another shape
   */
  static async open(directory: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<ModelDirectory> {
    throwIfCancelled(signal, directory);
    const resolved = await resolveDirectory(directory);
    const { config, rawConfig } = await readModelConfig(resolved);
    const { names, shardOf } = await listWeightFiles(resolved);
    const files: SafetensorsFile[] = [];
    try {
      const sources: SourceFile[] = [];
      for (const name of names) {
        const path = join(resolved, name);
        files.push(await SafetensorsFile.open(path, signal === undefined ? {} : { signal }));
        const { size, mtimeMs } = await stat(path);
        sources.push({ name, sizeBytes: size, modifiedAtMs: mtimeMs });
      }
      const fileOf = locateTensors(files, shardOf);
      checkWeights(config, fileOf);
      return new ModelDirectory({ directory: resolved, config, rawConfig, sources, files, fileOf });
    } catch (error) {
      for (const file of files) await file[Symbol.asyncDispose]();
      throw error;
    }
  }

  async read(
    name: string,
    options: { readonly into?: Float32Array; readonly signal?: AbortSignal } = {},
  ): Promise<Float32Array> {
    const file = this.#fileOf.get(name);
    if (file === undefined) throw missingTensor(this.directory, name);
    const values = await file.readFloat32(name, options);
    requireFinite(values, `${basename(file.path)}: ${name}`);
    return values;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const file of this.#files) await file[Symbol.asyncDispose]();
  }
}

/** The config of a model directory, without looking at its weights. @throws as {@link ModelDirectory.open} */
export async function readModelConfig(
  directory: string,
): Promise<{ readonly config: ModelConfig; readonly rawConfig: Readonly<Record<string, unknown>> }> {
  const resolved = await resolveDirectory(directory);
  const rawConfig = await readJsonObject(join(resolved, 'config.json'));
  const generation = await readJsonObject(join(resolved, 'generation_config.json'), { optional: true });
  return { config: parseModelConfig(rawConfig, generation), rawConfig };
}

/**
 * A JSON file that holds an object; an empty object for an absent one with `optional`.
 *
 * @throws `model_invalid` when it is missing, unreadable, above 64 MiB, not JSON or not an object
 */
export async function readJsonObject(
  path: string,
  { optional = false }: { readonly optional?: boolean } = {},
): Promise<Readonly<Record<string, unknown>>> {
  const bad = (expected: string, got: string, cause?: unknown) =>
    complaint({
      code: 'model_invalid',
      field: basename(path),
      expected,
      got,
      remedy: 'check that the directory is whole, or write it again',
      cause,
    });
  let text: string;
  try {
    const { size } = await stat(path);
    if (size > maxJsonBytes) throw bad(`at most ${maxJsonBytes} bytes`, `${size} bytes`);
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (LoopwrightError.isInstance(error)) throw error;
    if (errorCode(error) === 'ENOENT') {
      if (optional) return {};
      throw bad('a file in the directory', 'no such file', error);
    }
    throw bad('a readable file', errorCode(error) ?? 'an error', error);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw bad('JSON', `${text.length} characters that are not JSON`, error);
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw bad('a JSON object', Array.isArray(value) ? 'a list' : typeof value);
  }
  return value as Readonly<Record<string, unknown>>; // An object that is no list.
}

async function resolveDirectory(directory: string): Promise<string> {
  try {
    const resolved = await realpath(directory);
    if ((await stat(resolved)).isDirectory()) return resolved;
  } catch (error) {
    if (errorCode(error) !== 'ENOENT' && errorCode(error) !== 'ENOTDIR') throw notADirectory(directory, error);
  }
  throw notADirectory(directory);
}

function notADirectory(directory: string, cause?: unknown): LoopwrightError {
  return complaint({
    code: 'unknown_model',
    field: directory,
    expected: 'a directory with config.json and model.safetensors, or a GGUF file',
    got: cause === undefined ? 'no such directory or file' : (errorCode(cause) ?? 'an unreadable path'),
    remedy: 'check the path',
    cause,
  });
}

/** Names of the weight files, and which of them the index says a tensor is in. */
async function listWeightFiles(
  directory: string,
): Promise<{ names: readonly string[]; shardOf: ReadonlyMap<string, string> | null }> {
  const present = new Set(await readdir(directory));
  // With both there, the single file is what transformers loads.
  if (present.has(singleFile)) return { names: [singleFile], shardOf: null };
  if (!present.has(indexFile)) {
    throw complaint({
      code: 'model_invalid',
      field: directory,
      expected: `${singleFile}, or ${indexFile} with its shards`,
      got: 'neither',
      remedy: 'download the weights in safetensors format',
    });
  }
  const { weight_map: map } = await readJsonObject(join(directory, indexFile));
  const field = `${indexFile}: weight_map`;
  if (typeof map !== 'object' || map === null || Array.isArray(map)) {
    throw complaint({ code: 'model_invalid', field, expected: 'an object of tensor and file names', got: typeof map });
  }
  const shardOf = new Map<string, string>();
  for (const [tensor, file] of Object.entries(map)) {
    // Names come from outside: one that leads out of the directory is refused, not followed.
    if (typeof file !== 'string' || file !== basename(file) || !/^[\w.-]+\.safetensors$/.test(file)) {
      throw complaint({
        code: 'model_invalid',
        field,
        expected: 'names of .safetensors files in the same directory',
        got: typeof file === 'string' ? JSON.stringify(file.slice(0, 120)) : typeof file,
      });
    }
    shardOf.set(tensor, file);
  }
  const names = [...new Set(shardOf.values())].sort();
  const absent = names.filter((name) => !present.has(name));
  if (absent.length > 0) {
    throw complaint({
      code: 'model_invalid',
      field: directory,
      expected: `${names.length} shards`,
      got: `${names.length - absent.length}; ${absent.slice(0, 5).join(', ')} missing`,
      remedy: 'download the missing shards',
    });
  }
  return { names, shardOf };
}

function locateTensors(
  files: readonly SafetensorsFile[],
  shardOf: ReadonlyMap<string, string> | null,
): ReadonlyMap<string, SafetensorsFile> {
  const fileOf = new Map<string, SafetensorsFile>();
  for (const file of files) {
    for (const name of file.tensors.keys()) {
      // A tensor in two shards is read from the one that the index names.
      if (shardOf === null || shardOf.get(name) === basename(file.path)) fileOf.set(name, file);
    }
  }
  for (const [name, shard] of shardOf ?? []) {
    if (!fileOf.has(name)) throw missingTensor(shard, name);
  }
  return fileOf;
}

/** Buffers that old exports carry and that follow from the config. */
const ignoredTensors = /\.rotary_emb\.inv_freq$/;

function checkWeights(config: ModelConfig, fileOf: ReadonlyMap<string, SafetensorsFile>): void {
  const expected = weightSpecs(config);
  checkTensors(expected, {
    of: `a ${config.architecture} model`,
    found: new Map([...fileOf].map(([name, file]) => [name, file.info(name)])),
    where: (name) => basename(fileOf.get(name)!.path), // Asked for names that were found.
    isIgnored: (name) => (config.tiedEmbeddings && name === 'lm_head.weight') || ignoredTensors.test(name),
  });
  for (const { name } of expected) {
    const file = fileOf.get(name)!; // All are there.
    const { dtype } = file.info(name);
    if (['F32', 'F16', 'BF16', 'F64'].includes(dtype)) continue;
    throw complaint({
      code: 'unsupported_model',
      field: `${basename(file.path)}: ${name}`,
      expected: 'float32, float16 or bfloat16 weights',
      got: dtype,
      remedy: 'use the unquantized model',
    });
  }
}
