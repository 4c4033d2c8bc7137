/** Reading a tokenizer from a directory; the only file of this package that needs Node. */
import { readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { complaint } from '@loopwright/protocol';
import { type Renderer, rendererFor } from './renderers/renderer.js';
import { type LoadTokenizerOptions, loadTokenizer, type Tokenizer } from './tokenizer.js';
import { withinTime } from './within-time.js';

export { withinTime } from './within-time.js';

/** Above any file that the parser would accept; checked before reading. */
const maximumBytes = 256_000_000;
/** For one text, or for loading: far above what takes seconds on a busy machine. */
export const encodeLimitMs = 30_000;

/**
 * Loads the tokenizer of a model directory: `tokenizer.json`, and where present `tokenizer_config.json`,
 * `chat_template.jinja` and `generation_config.json`.
 *
 * @throws `model_invalid` when tokenizer.json is missing, or a file is malformed or above a limit
 */
export async function loadTokenizerFromDirectory(
  directory: string,
  { now, signal }: Pick<LoadTokenizerOptions, 'now'> & { readonly signal?: AbortSignal } = {},
): Promise<Tokenizer> {
  const read = (name: string): Promise<string | undefined> => readIfPresent(join(directory, name), signal);
  const [tokenizerJson, tokenizerConfigJson, chatTemplate, generationConfigJson] = await Promise.all([
    read('tokenizer.json'),
    read('tokenizer_config.json'),
    read('chat_template.jinja'),
    read('generation_config.json'),
  ]);
  if (tokenizerJson === undefined) {
    throw complaint({
      code: 'model_invalid',
      field: 'tokenizer.json',
      expected: `a file in ${directory}`,
      got: 'no such file',
      remedy: 'give the directory of a Hugging Face model with a fast tokenizer',
    });
  }
  return loadTokenizer({
    tokenizerJson,
    tokenizerConfigJson,
    chatTemplate,
    generationConfigJson,
    bounded: withinTime(encodeLimitMs),
    ...(now === undefined ? {} : { now }),
  });
}

/**
 * The renderer of a model directory.
 *
 * @throws as `loadTokenizerFromDirectory`; `invalid_argument` when the model has no chat template
 */
export async function rendererForDirectory(
  directory: string,
  options: Parameters<typeof loadTokenizerFromDirectory>[1] = {},
): Promise<Renderer> {
  return rendererFor(await loadTokenizerFromDirectory(directory, options));
}

async function readIfPresent(path: string, signal: AbortSignal | undefined): Promise<string | undefined> {
  signal?.throwIfAborted();
  try {
    const { size } = await stat(path);
    if (size > maximumBytes) {
      throw complaint({
        code: 'model_invalid',
        field: path,
        expected: `at most ${maximumBytes} bytes`,
        got: String(size),
        remedy: 'restore the file from the place the model came from',
      });
    }
    return await readFile(path, { encoding: 'utf8', ...(signal === undefined ? {} : { signal }) });
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
