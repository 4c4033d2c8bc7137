/** A model in a GGUF file, read like a model directory: names, shapes and the order of rows are those of Hugging Face files. */
import { realpath, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { architectures } from '../../local/models/architectures.js';
import { type ModelConfig, parseModelConfig } from '../../local/models/config.js';
import { type WeightSpec, weightSpecs } from '../../local/models/weight-names.js';
import { checkTensors, requireFinite } from '../check-tensors.js';
import type { ModelFiles, ModelSource, SourceFile } from '../model-source.js';
import { ggufConfig, ropeFactorsTensor } from './config.js';
import { GgufFile } from './gguf-file.js';
import { GgufModelFiles } from './gguf-model-files.js';
import { headRows, splitRotaryPairs } from './rotary-rows.js';
import { ggufTensorName } from './tensor-names.js';

/** Close it with `await using`. */
export class GgufModel implements ModelSource {
  readonly directory: string;
  readonly config: ModelConfig;
  readonly rawConfig: Readonly<Record<string, unknown>>;
  readonly specs: readonly WeightSpec[];
  readonly sources: readonly SourceFile[];
  readonly files: ModelFiles;
  readonly #file: GgufFile;

  private constructor(parts: {
    readonly file: GgufFile;
    readonly source: SourceFile;
    readonly config: ModelConfig;
    readonly rawConfig: Readonly<Record<string, unknown>>;
  }) {
    this.directory = parts.file.path;
    this.config = parts.config;
    this.rawConfig = parts.rawConfig;
    this.specs = weightSpecs(parts.config);
    this.sources = [parts.source];
    this.files = new GgufModelFiles(parts.file, parts.rawConfig);
    this.#file = parts.file;
  }

  /**
   * Opens a GGUF file and checks that it holds all tensors of its architecture, of the right shapes, and no others.
   *
   * @throws `model_invalid`, `unsupported_model` as {@link GgufFile.open} and {@link ggufConfig}
   */
  static async open(path: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<GgufModel> {
    const resolved = await realpath(path);
    const file = await GgufFile.open(resolved, signal === undefined ? {} : { signal });
    try {
      const { size, mtimeMs } = await stat(resolved);
      const rawConfig = await ggufConfig(file);
      const config = parseModelConfig(rawConfig);
      const specs = weightSpecs(config).map((spec) => ({ ...spec, name: ggufTensorName(spec.name) }));
      checkTensors(specs, {
        of: `a ${config.architecture} model`,
        found: file.tensors,
        where: () => basename(resolved),
        isIgnored: (name) => name === ropeFactorsTensor,
      });
      const source = { name: basename(resolved), sizeBytes: size, modifiedAtMs: mtimeMs };
      return new GgufModel({ file, source, config, rawConfig });
    } catch (error) {
      await file[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** As ModelDirectory.read. */
  async read(
    name: string,
    options: { readonly into?: Float32Array; readonly signal?: AbortSignal } = {},
  ): Promise<Float32Array> {
    const values = await this.#file.readFloat32(ggufTensorName(name), options);
    requireFinite(values, `${basename(this.directory)}: ${ggufTensorName(name)}`);
    if (architectures[this.config.architecture].gguf?.interleaved === true) {
      const rows = headRows(this.config, name);
      if (rows !== undefined) splitRotaryPairs(values, rows);
    }
    return values;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file[Symbol.asyncDispose]();
  }
}
