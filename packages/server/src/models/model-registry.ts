/** The base models that this server can load, by id: directories in the Hugging Face layout, GGUF files, and those of a download cache. */
import { isAbsolute } from 'node:path';
import { type ModelFiles, openModelFiles } from '@loopwright/engine';
import { complaint, type LoopwrightError, type ModelCard } from '@loopwright/protocol';

/** A model that is installed. */
export interface InstalledModel {
  /** Such as `loopwright-tiny` or `org/name`. */
  readonly id: string;
  /** A model directory, or a GGUF file. */
  readonly directory: string;
}

/** Models that were not there, or not looked at, when the server started: those of a download cache. */
export interface ModelCache {
  /** Those that are whole, by their plain names. */
  list(): Promise<readonly InstalledModel[]>;
  /** The model of a name, under an id that will mean the same files for ever; undefined when it isn't there, or not whole. */
  find(name: string): Promise<InstalledModel | undefined>;
  /** How to get the model of a name into the cache; undefined for what can't be one's name. */
  remedy(name: string): string | undefined;
}

export interface ModelRegistryOptions {
  readonly models: readonly InstalledModel[];
  /** Looked at each time a name isn't an installed model's. Nothing is ever downloaded into it here. */
  readonly cache?: ModelCache;
  /** Whether a session may name an absolute path instead of an id. */
  readonly allowPaths: boolean;
}

/** config.json beyond this is not one of a model. */
const maxConfigBytes = 1 << 20;

export class ModelRegistry {
  readonly #models: readonly InstalledModel[];
  readonly #allowPaths: boolean;
  readonly #cache: ModelCache | undefined;
  /** What the cache found, by the id that it gave. */
  readonly #cached = new Map<string, InstalledModel>();
  readonly #cards = new Map<string, ModelCard>();
  readonly #files = new Map<string, Promise<ModelFiles>>();

  /** @throws `invalid_argument` for two models of one id */
  constructor({ models, allowPaths, cache }: ModelRegistryOptions) {
    const ids = models.map(({ id }) => id);
    const twice = ids.find((id, index) => ids.indexOf(id) !== index);
    if (twice !== undefined) {
      throw complaint({
        field: 'models',
        expected: 'each id once',
        got: `${twice} twice`,
        remedy: 'rename or remove one',
      });
    }
    this.#models = models;
    this.#allowPaths = allowPaths;
    this.#cache = cache;
  }

  /** Installed models, then those of the cache that have other ids. */
  async list(): Promise<readonly InstalledModel[]> {
    const ids = new Set(this.#models.map(({ id }) => id));
    const cached = (await this.#cache?.list()) ?? [];
    return [...this.#models, ...cached.filter(({ id }) => !ids.has(id))];
  }

  /**
   * The model of an id (letter case counts), of a path where paths are allowed, or of a name in the cache. The id of the answer names
   * the same files later on, where the given name may come to mean newer ones.
   *
   * @throws `unknown_model`
   */
  async find(idOrPath: string): Promise<InstalledModel> {
    const found = await this.lookUp(idOrPath);
    if (found === undefined) throw this.#unknownModel(idOrPath);
    return found;
  }

  /** As {@link find}; undefined where there is none. */
  async lookUp(idOrPath: string): Promise<InstalledModel | undefined> {
    const installed = this.#models.find(({ id }) => id === idOrPath) ?? this.#cached.get(idOrPath);
    if (installed !== undefined) return installed;
    if (this.#allowPaths && isAbsolute(idOrPath)) return { id: idOrPath, directory: idOrPath };
    const cached = await this.#cache?.find(idOrPath);
    if (cached !== undefined) this.#cached.set(cached.id, cached);
    return cached;
  }

  /** Config and tokenizer of a model. The head of a GGUF file is read once. @throws `model_invalid`, `unsupported_model` for a GGUF file */
  files({ directory }: InstalledModel): Promise<ModelFiles> {
    let files = this.#files.get(directory);
    if (files === undefined) {
      files = openModelFiles(directory);
      this.#files.set(directory, files);
      files.catch(() => this.#files.delete(directory));
    }
    return files;
  }

  /** @throws `unknown_model`; `model_invalid` when the directory or its config.json is missing or broken; `unsupported_model` */
  async card(idOrPath: string): Promise<ModelCard> {
    const model = await this.find(idOrPath);
    const { id, directory } = model;
    const known = this.#cards.get(directory);
    if (known !== undefined) return { ...known, id };
    const card = readCard(id, directory, await readConfig(model, await this.files(model)));
    this.#cards.set(directory, card);
    return card;
  }

  /** How a model that isn't here comes here, where its name is one of the hub. */
  pullRemedy(id: string): string | undefined {
    return this.#cache?.remedy(id);
  }

  #unknownModel(id: string): LoopwrightError {
    const names = this.#models.map((model) => model.id).join(', ');
    const installed = names === '' ? 'an installed model (there is none)' : `one of ${names}`;
    const pull = this.pullRemedy(id);
    const others = this.#allowPaths
      ? 'name one of these, or a directory with config.json, weights and tokenizer by its absolute path'
      : 'name one of these, or start the server with that model (loopwright serve --model id=directory)';
    return complaint({
      code: 'unknown_model',
      field: 'baseModel',
      expected: this.#allowPaths ? `${installed}, or the absolute path of a model directory` : installed,
      got: id.slice(0, 200),
      remedy: pull === undefined ? others : `${pull}; or ${others}`,
    });
  }
}

async function readConfig({ id, directory }: InstalledModel, files: ModelFiles): Promise<Record<string, unknown>> {
  const bytes = await files.read('config.json');
  if (bytes === undefined || bytes.length > maxConfigBytes) {
    throw complaint({
      code: 'model_invalid',
      field: 'baseModel',
      expected: `a GGUF file, or a model directory with config.json, for ${id}`,
      got: bytes === undefined ? `none at ${directory}` : `a config.json of ${bytes.length} bytes`,
      remedy: 'check the path of the model directory or file',
    });
  }
  const text = new TextDecoder().decode(bytes);
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>; // true: any object can be read so
  } catch (cause) {
    throw complaint({
      code: 'model_invalid',
      field: 'config.json',
      expected: 'JSON',
      got: `${text.length} characters that are none`,
      cause,
    });
  }
  throw complaint({ code: 'model_invalid', field: 'config.json', expected: 'a JSON object', got: 'another value' });
}

/** `parameters` is an estimate from the sizes in the config; the engine counts the real ones. */
function readCard(id: string, directory: string, config: Record<string, unknown>): ModelCard {
  const size = (key: string, fallback?: number): number => {
    const value = config[key] ?? fallback;
    if (typeof value === 'number' && Number.isInteger(value) && value > 0) return value;
    throw complaint({
      code: 'model_invalid',
      field: `config.json ${key}`,
      expected: 'a positive integer',
      got: typeof value,
    });
  };
  const architecture = config.model_type;
  if (typeof architecture !== 'string') {
    throw complaint({
      code: 'model_invalid',
      field: 'config.json model_type',
      expected: 'a string',
      got: typeof architecture,
    });
  }
  const vocabSize = size('vocab_size');
  const width = size('hidden_size');
  const layers = size('num_hidden_layers');
  const heads = size('num_attention_heads');
  const headWidth = size('head_dim', Math.max(1, Math.floor(width / heads)));
  const keyValueHeads = size('num_key_value_heads', heads);
  const attention = width * headWidth * (2 * heads + 2 * keyValueHeads);
  const embeddings = (config.tie_word_embeddings === true ? 1 : 2) * vocabSize * width;
  return {
    id,
    architecture,
    contextLength: size('max_position_embeddings', 2048),
    vocabSize,
    parameters:
      embeddings + layers * (attention + 3 * width * size('intermediate_size', 4 * width) + 2 * width) + width,
    directory,
  };
}
