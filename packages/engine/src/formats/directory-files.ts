/** Config, tokenizer and other small files of a model directory. */
import { readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { LoopwrightError } from '@loopwright/protocol';
import { errorCode } from './atomic-file.js';
import type { ModelFiles } from './model-source.js';
import { invalidFile } from './source-file.js';

/** Above any tokenizer.json that a parser accepts. */
const maxBytes = 256_000_000;

/** The files of a directory; of a name that leads out of it only the last part counts. */
export class DirectoryFiles implements ModelFiles {
  readonly #directory: string;

  constructor(directory: string) {
    this.#directory = directory;
  }

  /** @throws `model_invalid` for a file that can't be read or is above 256 MB */
  async read(name: string): Promise<Uint8Array | undefined> {
    const path = join(this.#directory, basename(name));
    try {
      const { size } = await stat(path);
      if (size > maxBytes) throw invalidFile(path, 'size', `at most ${maxBytes} bytes`, `${size}`);
      return await readFile(path);
    } catch (error) {
      if (LoopwrightError.isInstance(error)) throw error;
      const code = errorCode(error);
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
      throw invalidFile(path, 'file', 'a readable file', code ?? 'an error', error);
    }
  }
}
