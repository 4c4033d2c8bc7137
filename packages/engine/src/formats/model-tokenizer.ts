/** The tokenizer of a model from its small files. */
import { complaint } from '@loopwright/protocol';
import { loadTokenizer, type Tokenizer, type TokenizerSources } from '@loopwright/text';
import { encodeLimitMs, withinTime } from '@loopwright/text/node';
import type { ModelFiles } from './model-source.js';

/** The files that say it, as text: `tokenizer.json` and, where present, config and chat template. Undefined without tokenizer.json. */
export async function readTokenizerSources(files: ModelFiles): Promise<TokenizerSources | undefined> {
  const read = async (name: string): Promise<string | undefined> => {
    const bytes = await files.read(name);
    return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
  };
  const tokenizerJson = await read('tokenizer.json');
  if (tokenizerJson === undefined) return undefined;
  return {
    tokenizerJson,
    tokenizerConfigJson: await read('tokenizer_config.json'),
    chatTemplate: await read('chat_template.jinja'),
    generationConfigJson: await read('generation_config.json'),
  };
}

/**
 * Loads the tokenizer.
 *
 * @throws `model_invalid` without tokenizer.json, or when a file is malformed or above a limit; `unsupported_model` for a GGUF file
 *   with a tokenizer that isn't read
 */
export async function loadModelTokenizer(files: ModelFiles): Promise<Tokenizer> {
  const sources = await readTokenizerSources(files);
  if (sources !== undefined) return loadTokenizer({ ...sources, bounded: withinTime(encodeLimitMs) });
  throw complaint({
    code: 'model_invalid',
    field: 'tokenizer.json',
    expected: 'a tokenizer beside the weights',
    got: 'none',
    remedy: 'take a model with a fast tokenizer, or work with token ids alone',
  });
}
