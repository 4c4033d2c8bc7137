/** A model directory that loads in milliseconds: the random Llama of the fixtures with a tokenizer of single characters. */
import { cp, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { tinyModelDirectory } from '@loopwright/testkit';

const specialTokens = ['<|unk|>', '<|bos|>', '<|eos|>'];
const characters = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i));

/** Context of 512 tokens, vocabulary of 300, of which the tokenizer knows the first 98. @returns the directory */
export async function makeTinyModel(directory: string): Promise<string> {
  await cp(tinyModelDirectory('llama-tied'), directory, { recursive: true });
  const vocabulary = [...specialTokens, ...characters];
  const added = specialTokens.map((content, id) => ({
    ...{ id, content, special: true, normalized: false },
    ...{ single_word: false, lstrip: false, rstrip: false },
  }));
  await writeJson(join(directory, 'tokenizer.json'), {
    version: '1.0',
    added_tokens: added,
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: { type: 'Fuse' },
    model: {
      type: 'BPE',
      unk_token: '<|unk|>',
      vocab: Object.fromEntries(vocabulary.map((token, id) => [token, id])),
      merges: [],
    },
  });
  await writeJson(join(directory, 'tokenizer_config.json'), { eos_token: '<|eos|>', unk_token: '<|unk|>' });
  return directory;
}

/** Changes members of the config of a model directory. */
export async function changeConfig(directory: string, changes: Readonly<Record<string, unknown>>): Promise<void> {
  const path = join(directory, 'config.json');
  await writeJson(path, { ...JSON.parse(await readFile(path, 'utf8')), ...changes });
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFile(path, `${JSON.stringify(value, null, 2)}\n`);
}
