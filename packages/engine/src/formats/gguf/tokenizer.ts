/** The tokenizer of a GGUF file as the files of a Hugging Face model would say it. */
import { basename } from 'node:path';
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { invalidFile } from '../source-file.js';
import type { GgufValue } from './header.js';
import { checkedMetadata, type Metadata } from './metadata.js';
import { type PreTokenizer, type PreTokenizerName, preTokenizerNames, preTokenizers } from './pre-tokenizers.js';

export interface TokenizerJson {
  readonly tokenizer: Readonly<Record<string, unknown>>;
  readonly config: Readonly<Record<string, unknown>>;
  readonly chatTemplate?: string;
}

/** Kinds of tokens, by their number in the file. */
export const tokenTypes = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;

/** Files without a tokenizer say so by these names. */
const none = ['none', 'no_vocab'];

/**
 * tokenizer.json, tokenizer_config.json and chat template; undefined for a file without a tokenizer.
 *
 * @throws `unsupported_model` for a tokenizer of another kind than byte-level BPE, or one that cuts texts in a way that isn't
 *   known; `model_invalid` for missing or malformed metadata. Both name the key
 */
export function ggufTokenizer(values: ReadonlyMap<string, GgufValue>, path: string): TokenizerJson | undefined {
  const metadata = checkedMetadata(values, path);
  const model = metadata.optionalString('tokenizer.ggml.model') ?? 'none';
  if (none.includes(model)) return undefined;
  if (model !== 'gpt2') {
    throw unsupported(path, { key: 'tokenizer.ggml.model', expected: 'gpt2 (byte-level BPE)', got: model });
  }
  const pre = metadata.optionalString('tokenizer.ggml.pre') ?? 'default';
  if (!Object.hasOwn(preTokenizers, pre)) {
    throw unsupported(path, { key: 'tokenizer.ggml.pre', expected: preTokenizerNames.join(', '), got: pre });
  }
  const kind: PreTokenizer = preTokenizers[pre as PreTokenizerName]; // Just found among the keys.
  const tokens = metadata.strings('tokenizer.ggml.tokens');
  const types = metadata.has('tokenizer.ggml.token_type')
    ? metadata.numbers('tokenizer.ggml.token_type', tokens.length)
    : tokens.map(() => tokenTypes.normal);
  // Without a prototype, since a token may be called like one of its properties.
  const vocab: Record<string, number> = Object.create(null);
  const added: Readonly<Record<string, unknown>>[] = [];
  tokens.forEach((content, id) => {
    const type = types[id];
    if (type === tokenTypes.unused) return;
    if (type === tokenTypes.control || type === tokenTypes.userDefined || type === tokenTypes.unknown) {
      const special = type !== tokenTypes.userDefined;
      added.push({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special });
    } else if (vocab[content] === undefined) vocab[content] = id;
    else throw invalidFile(path, `tokenizer.ggml.tokens, token ${id}`, 'each token once', 'the text of another token');
  });
  const named = namedTokens(metadata, { tokens, path });
  const chatTemplate = metadata.optionalString('tokenizer.chat_template');
  return {
    tokenizer: {
      version: '1.0',
      truncation: null,
      padding: null,
      added_tokens: added,
      normalizer: kind.normalizer,
      pre_tokenizer: kind.preTokenizer,
      post_processor: postProcessor(metadata, { kind, named, tokens }),
      decoder: { type: 'ByteLevel', add_prefix_space: true, trim_offsets: true, use_regex: true },
      model: {
        type: 'BPE',
        dropout: null,
        unk_token: null,
        continuing_subword_prefix: null,
        end_of_word_suffix: null,
        fuse_unk: false,
        byte_fallback: false,
        ignore_merges: kind.ignoreMerges,
        vocab,
        merges: metadata.strings('tokenizer.ggml.merges'),
      },
    },
    config: {
      tokenizer_class: 'PreTrainedTokenizerFast',
      clean_up_tokenization_spaces: false,
      ...Object.fromEntries(Object.entries(named).map(([name, id]) => [`${name}_token`, tokens[id]])),
    },
    ...(chatTemplate === undefined ? {} : { chatTemplate }),
  };
}

/** Their names in tokenizer_config.json, without `_token`, by those in the file. */
const tokenNames = {
  bos: 'bos_token_id',
  eos: 'eos_token_id',
  unk: 'unknown_token_id',
  pad: 'padding_token_id',
} as const;

type NamedTokens = Partial<Record<keyof typeof tokenNames, number>>;

function namedTokens(
  metadata: Metadata,
  { tokens, path }: { readonly tokens: readonly string[]; readonly path: string },
): NamedTokens {
  const named: NamedTokens = {};
  for (const [name, key] of Object.entries(tokenNames) as [keyof typeof tokenNames, string][]) {
    const at = `tokenizer.ggml.${key}`;
    const id = metadata.optionalCount(at);
    if (id === undefined) continue;
    if (id >= tokens.length) throw invalidFile(path, at, `a token below ${tokens.length}`, `${id}`);
    named[name] = id;
  }
  return named;
}

/** What is put around a text when special tokens are asked for; null for nothing. */
function postProcessor(
  metadata: Metadata,
  {
    kind,
    named,
    tokens,
  }: { readonly kind: PreTokenizer; readonly named: Readonly<NamedTokens>; readonly tokens: readonly string[] },
): Readonly<Record<string, unknown>> | null {
  const bos = metadata.flag('tokenizer.ggml.add_bos_token', kind.addBos) ? named.bos : undefined;
  const eos = metadata.flag('tokenizer.ggml.add_eos_token', false) ? named.eos : undefined;
  if (bos === undefined && eos === undefined) return null;
  const special = (id: number | undefined) =>
    id === undefined ? [] : [{ SpecialToken: { id: tokens[id], type_id: 0 } }];
  const used = [...new Set([bos, eos].filter((id) => id !== undefined))];
  const around = (id: 'A' | 'B') => [...special(bos), { Sequence: { id, type_id: 0 } }, ...special(eos)];
  return {
    type: 'TemplateProcessing',
    single: around('A'),
    pair: [...around('A'), ...around('B')],
    special_tokens: Object.fromEntries(
      used.map((id) => [tokens[id], { id: tokens[id], ids: [id], tokens: [tokens[id]] }]),
    ),
  };
}

function unsupported(
  path: string,
  { key, expected, got }: { readonly key: string; readonly expected: string; readonly got: string },
): LoopwrightError {
  return complaint({
    code: 'unsupported_model',
    field: `${basename(path)}: ${key}`,
    expected,
    got: JSON.stringify(got.slice(0, 80)),
    remedy: 'take the Hugging Face directory of this model, whose tokenizer.json says what the GGUF file leaves out',
  });
}
