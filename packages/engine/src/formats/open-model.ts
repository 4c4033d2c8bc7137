/** Models by their path, whichever form they are in: a Hugging Face directory, or a GGUF file that stands for one. */
import { stat } from 'node:fs/promises';
import { DirectoryFiles } from './directory-files.js';
import { ggufConfig } from './gguf/config.js';
import { GgufFile } from './gguf/gguf-file.js';
import { GgufModel } from './gguf/gguf-model.js';
import { GgufModelFiles } from './gguf/gguf-model-files.js';
import { ModelDirectory } from './model-directory.js';
import type { ModelFiles, ModelSource } from './model-source.js';

/** Opens a model directory or a GGUF file. @throws as ModelDirectory.open and GgufModel.open */
export async function openModel(path: string, options: { readonly signal?: AbortSignal } = {}): Promise<ModelSource> {
  return (await isFile(path)) ? GgufModel.open(path, options) : ModelDirectory.open(path, options);
}

/**
 * The config and tokenizer of a model, without looking at its weights. Nothing stays open.
 *
 * @throws for a GGUF file `model_invalid`, `unsupported_model`, as reading its head and config does
 */
export async function openModelFiles(path: string): Promise<ModelFiles> {
  if (!(await isFile(path))) return new DirectoryFiles(path);
  await using file = await GgufFile.open(path);
  return new GgufModelFiles(file, await ggufConfig(file));
}

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() === true;
}
