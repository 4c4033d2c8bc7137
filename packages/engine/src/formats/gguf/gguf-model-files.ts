/** The small files that a GGUF file stands for: config and tokenizer, as they would lie in a model directory. */
import type { ModelFiles } from '../model-source.js';
import type { GgufFile } from './gguf-file.js';
import { ggufTokenizer } from './tokenizer.js';

export class GgufModelFiles implements ModelFiles {
  readonly #file: Pick<GgufFile, 'metadata' | 'path'>;
  readonly #config: Readonly<Record<string, unknown>>;
  #tokenizer: ReadonlyMap<string, string> | undefined;

  /** Reads metadata alone: the file may be closed. */
  constructor({ metadata, path }: Pick<GgufFile, 'metadata' | 'path'>, config: Readonly<Record<string, unknown>>) {
    this.#file = { metadata, path };
    this.#config = config;
  }

  /** @throws `unsupported_model`, `model_invalid` as {@link ggufTokenizer}, when a file of the tokenizer is asked for */
  async read(name: string): Promise<Uint8Array | undefined> {
    const text = name === 'config.json' ? json(this.#config) : this.#tokenizerFile(name);
    return text === undefined ? undefined : new TextEncoder().encode(text);
  }

  #tokenizerFile(name: string): string | undefined {
    if (!['tokenizer.json', 'tokenizer_config.json', 'chat_template.jinja'].includes(name)) return undefined;
    if (this.#tokenizer === undefined) {
      const found = ggufTokenizer(this.#file.metadata, this.#file.path);
      const files = new Map<string, string>();
      if (found !== undefined) {
        files.set('tokenizer.json', json(found.tokenizer)).set('tokenizer_config.json', json(found.config));
        if (found.chatTemplate !== undefined) files.set('chat_template.jinja', found.chatTemplate);
      }
      this.#tokenizer = files;
    }
    return this.#tokenizer.get(name);
  }
}

function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
