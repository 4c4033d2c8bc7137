/** The metadata that a GGUF file has of a model's tokenizer and chat template. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { readTokenizerFiles, type TokenizerFiles, tokenOfBytes } from '@loopwright/text';
import type { ModelConfig } from '../../local/models/config.js';
import type { ModelFiles } from '../model-source.js';
import { loadModelTokenizer, readTokenizerSources } from '../model-tokenizer.js';
import type { TypedValue } from './header-writer.js';
import { findPreTokenizer, type PreTokenizerName, preTokenizerNames } from './pre-tokenizers.js';
import { tokenTypes } from './tokenizer.js';

/**
 * What says the tokenizer of a model; for a model without tokenizer.json, that there is none.
 *
 * @throws `unsupported_model` for a tokenizer that isn't byte-level BPE with a known way of cutting texts; `model_invalid` for
 *   malformed files, and for more tokens than the model has
 */
export async function tokenizerMetadata(
  files: ModelFiles,
  config: ModelConfig,
): Promise<ReadonlyMap<string, TypedValue>> {
  const sources = await readTokenizerSources(files);
  if (sources === undefined) return new Map([['tokenizer.ggml.model', { type: 'string', value: 'none' }]]);
  const { raw, addedTokens, specialTokens, chatTemplate } = readTokenizerFiles(sources);
  const { vocab, merges, pre } = byteLevelParts(raw);
  const tokens = Array.from({ length: config.vocabSize }, (_, id) => `[PAD${id}]`);
  const types = new Array<number>(config.vocabSize).fill(tokenTypes.unused);
  const put = (id: number, text: string, type: number) => {
    if (id >= config.vocabSize) throw tooManyTokens(config.vocabSize, id);
    tokens[id] = text;
    types[id] = type;
  };
  for (const [text, id] of vocab) put(id, text, tokenTypes.normal);
  const named = new Set(Object.values(specialTokens));
  const idOf = new Map<string, number>();
  for (const { id, content, special } of addedTokens) {
    put(id, content, special || named.has(content) ? tokenTypes.control : tokenTypes.userDefined);
    idOf.set(content, id);
  }
  const metadata = new Map<string, TypedValue>([
    ['tokenizer.ggml.model', { type: 'string', value: 'gpt2' }],
    ['tokenizer.ggml.pre', { type: 'string', value: pre }],
    ['tokenizer.ggml.tokens', { type: 'strings', value: tokens }],
    ['tokenizer.ggml.token_type', { type: 'int32s', value: types }],
    ['tokenizer.ggml.merges', { type: 'strings', value: merges }],
  ]);
  const special = (name: string) => {
    const text = specialTokens[name];
    return text === undefined ? undefined : idOf.get(text);
  };
  const bos = special('bos_token') ?? config.bosTokenId ?? undefined;
  const eos = special('eos_token') ?? config.eosTokenIds[0];
  const ids = {
    bos_token_id: bos,
    eos_token_id: eos,
    // Another token that ends a turn, where generation stops at several.
    eot_token_id: config.eosTokenIds.find((id) => id !== eos),
    unknown_token_id: special('unk_token'),
    padding_token_id: special('pad_token'),
  };
  for (const [key, id] of Object.entries(ids)) {
    if (id !== undefined) metadata.set(`tokenizer.ggml.${key}`, { type: 'uint32', value: id });
  }
  const around = (await loadModelTokenizer(files)).encode('', { addSpecialTokens: true });
  metadata.set('tokenizer.ggml.add_bos_token', { type: 'bool', value: bos !== undefined && around[0] === bos });
  metadata.set('tokenizer.ggml.add_eos_token', { type: 'bool', value: eos !== undefined && around.at(-1) === eos });
  metadata.set('tokenizer.ggml.add_space_prefix', { type: 'bool', value: false });
  if (chatTemplate !== undefined) metadata.set('tokenizer.chat_template', { type: 'string', value: chatTemplate });
  return metadata;
}

interface ByteLevelParts {
  readonly vocab: readonly (readonly [string, number])[];
  /** Each as two tokens with a space between. */
  readonly merges: readonly string[];
  readonly pre: PreTokenizerName;
}

function byteLevelParts(raw: TokenizerFiles['raw']): ByteLevelParts {
  const model = raw.model as { type?: string; vocab: Record<string, number>; merges?: (string | string[])[] }; // readTokenizerFiles checked it.
  const type = model.type ?? (model.merges === undefined ? 'another kind' : 'BPE');
  if (type !== 'BPE') throw unsupported('model.type', 'BPE', type);
  const merges = (model.merges ?? []).map((merge) => (typeof merge === 'string' ? merge : merge.join(' ')));
  const vocab = Object.entries(model.vocab);
  const pre = findPreTokenizer({
    normalizer: raw.normalizer,
    preTokenizer: raw.pre_tokenizer,
    ignoreMerges: 'ignore_merges' in model && model.ignore_merges === true,
  });
  if (pre !== undefined) return { vocab, merges, pre };
  const added = new Set(listOf(raw.added_tokens).flatMap((token) => contentOf(token) ?? []));
  const plain = vocab.filter(([text]) => !added.has(text));
  // One token for each character and nothing to merge: however a text is cut, it comes to the same.
  if (merges.length === 0 && raw.normalizer == null && plain.every(([text]) => /^[\0-\x7f]$/.test(text))) {
    const bytes = plain.map(([text, id]) => [tokenOfBytes(new TextEncoder().encode(text)), id] as const);
    return { vocab: bytes, merges, pre: 'smollm' };
  }
  throw unsupported('pre_tokenizer', `one of ${preTokenizerNames.join(', ')}`, 'another way to cut a text');
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function contentOf(token: unknown): string | undefined {
  const isToken = typeof token === 'object' && token !== null && 'content' in token;
  return isToken && typeof token.content === 'string' ? token.content : undefined;
}

function tooManyTokens(vocabSize: number, id: number): LoopwrightError {
  return complaint({
    code: 'model_invalid',
    field: 'tokenizer.json',
    expected: `tokens below ${vocabSize}, the vocabulary of the model`,
    got: `${id}`,
    remedy: 'check that the tokenizer belongs to the weights',
  });
}

function unsupported(field: string, expected: string, got: string): LoopwrightError {
  return complaint({
    code: 'unsupported_model',
    field: `tokenizer.json: ${field}`,
    expected: `${expected}, which GGUF files have a name for`,
    got,
    remedy: 'export a merged directory instead, and convert it with the tools of llama.cpp',
  });
}
