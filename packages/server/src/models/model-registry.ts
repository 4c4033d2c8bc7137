/** The base models that this server can load: directories in the Hugging Face layout, by id. */
import { readFile, stat } from 'node:fs/promises';
import { isAbsolute, join } from 'node:path';
import { complaint, type LoopwrightError, type ModelCard } from '@loopwright/protocol';

/** A model that is installed. */
export interface InstalledModel {
  /** Such as `loopwright-tiny` or `org/name`. */
  readonly id: string;
  readonly directory: string;
}

export interface ModelRegistryOptions {
  readonly models: readonly InstalledModel[];
  /** Whether a session may name an absolute directory instead of an id. */
  readonly allowPaths: boolean;
}

/** config.json beyond this is not one of a model. */
const maxConfigBytes = 1 << 20;

export class ModelRegistry {
  readonly #models: readonly InstalledModel[];
  readonly #allowPaths: boolean;
  readonly #cards = new Map<string, ModelCard>();

  /** @throws `invalid_argument` for two models of one id */
  constructor({ models, allowPaths }: ModelRegistryOptions) {
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
  }

  list(): readonly InstalledModel[] {
    return this.#models;
  }

  /** The model of an id (letter case counts), or of a directory where paths are allowed. @throws `unknown_model` */
  find(idOrPath: string): InstalledModel {
    const installed = this.#models.find(({ id }) => id === idOrPath);
    if (installed !== undefined) return installed;
    if (this.#allowPaths && isAbsolute(idOrPath)) return { id: idOrPath, directory: idOrPath };
    throw this.#unknownModel(idOrPath);
  }

  /** @throws `unknown_model`; `model_invalid` when the directory or its config.json is missing or broken */
  async card(idOrPath: string): Promise<ModelCard> {
    const { id, directory } = this.find(idOrPath);
    const known = this.#cards.get(directory);
    if (known !== undefined) return { ...known, id };
    const card = readCard(id, directory, await readConfig(id, directory));
    this.#cards.set(directory, card);
    return card;
  }

  #unknownModel(id: string): LoopwrightError {
    const names = this.#models.map((model) => model.id).join(', ');
    const installed = names === '' ? 'an installed model (there is none)' : `one of ${names}`;
    return complaint({
      code: 'unknown_model',
      field: 'baseModel',
      expected: this.#allowPaths ? `${installed}, or the absolute path of a model directory` : installed,
      got: id.slice(0, 200),
      remedy: this.#allowPaths
        ? 'name one of these, or a directory with config.json, weights and tokenizer by its absolute path'
        : 'name one of these, or start the server with that model (loopwright serve --model id=directory)',
    });
  }
}

async function readConfig(id: string, directory: string): Promise<Record<string, unknown>> {
  const path = join(directory, 'config.json');
  let text: string;
  try {
    if ((await stat(path)).size > maxConfigBytes) throw new Error('too large');
    text = await readFile(path, 'utf8');
  } catch (cause) {
    throw complaint({
      code: 'model_invalid',
      field: 'baseModel',
      expected: `a model directory with a readable config.json for ${id}`,
      got: `none at ${path}`,
      remedy: 'check the directory of the model',
      cause,
    });
  }
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
