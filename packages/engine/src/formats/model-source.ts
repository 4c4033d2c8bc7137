/** Where a model's weights are read from: a Hugging Face directory, or a GGUF file. */
import type { ModelConfig } from '../local/models/config.js';
import type { WeightSpec } from '../local/models/weight-names.js';

/** A file the weights come from, as it was when the model was opened. */
export interface SourceFile {
  readonly name: string;
  readonly sizeBytes: number;
  readonly modifiedAtMs: number;
}

/** Config, tokenizer and other small files beside the weights. */
export interface ModelFiles {
  /** The bytes of `config.json`, `tokenizer.json` and so on; undefined where the model has no such file. */
  read(name: string): Promise<Uint8Array | undefined>;
}

/** An open model. Everything but the values has been checked. Close it with `await using`. */
export interface ModelSource extends AsyncDisposable {
  /** Absolute path of the directory or file, symbolic links resolved. */
  readonly directory: string;
  readonly config: ModelConfig;
  /** The whole of config.json, for writing it again. */
  readonly rawConfig: Readonly<Record<string, unknown>>;
  readonly specs: readonly WeightSpec[];
  readonly sources: readonly SourceFile[];
  /** Config, tokenizer and what else lies beside the weights. */
  readonly files: ModelFiles;
  /**
   * A tensor's values as float32, checked to be finite, by its name in Hugging Face files.
   *
   * @param options `into` is where to put them; a new array by default
   * @throws `model_invalid` for NaN or infinity, naming tensor and position, and for a file cut since it was opened
   */
  read(name: string, options?: { readonly into?: Float32Array; readonly signal?: AbortSignal }): Promise<Float32Array>;
}
