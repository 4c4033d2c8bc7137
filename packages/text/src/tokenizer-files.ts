/** The files of a tokenizer, read with limits and checked: what comes in is hostile until shown otherwise. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';

/** Largest files accepted, in characters. The largest tokenizer.json in use (262,144 tokens) has 33 million. */
export const fileLimits = {
  tokenizerJson: 128_000_000,
  tokenizerConfigJson: 4_000_000,
  generationConfigJson: 1_000_000,
} as const;

/** Nesting of a JSON file; real ones stay below 10. */
const maximumDepth = 64;
const maximumVocabulary = 4_000_000;

export interface AddedTokenFile {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
  /** Matched against the normalised text instead of the text as it came. */
  readonly normalized: boolean;
  /** Swallow white space on that side. */
  readonly lstrip: boolean;
  readonly rstrip: boolean;
  /** Only where no letter, digit or underscore stands beside it. */
  readonly singleWord: boolean;
}

/** Everything this package takes from the files, checked. */
export interface TokenizerFiles {
  /** tokenizer.json as it came; its `model`, `pre_tokenizer`, … are read by the library. */
  readonly raw: Readonly<Record<string, unknown>>;
  readonly addedTokens: readonly AddedTokenFile[];
  /** `bos_token`, `eos_token`, …, by those names. */
  readonly specialTokens: Readonly<Record<string, string>>;
  readonly chatTemplate: string | undefined;
  /** Ids named by generation_config.json. */
  readonly generationEosIds: readonly number[];
}

const remedy = 'restore the file from the place the model came from';

function invalid(field: string, expected: string, got: string, cause?: unknown): LoopwrightError {
  return complaint({ code: 'model_invalid', field, expected, got, remedy, cause });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'number') return String(value);
  return typeof value === 'string' ? `a string of ${value.length} characters` : typeof value;
}

/** Refuses text whose brackets nest deeper than the limit, before a parser recurses into it. */
function checkDepth(text: string, field: string): void {
  let depth = 0;
  let inString = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (inString) {
      if (code === 0x5c) i += 1;
      else if (code === 0x22) inString = false;
    } else if (code === 0x22) inString = true;
    else if (code === 0x7b || code === 0x5b) {
      depth += 1;
      if (depth > maximumDepth) throw invalid(field, `nesting of at most ${maximumDepth}`, 'deeper nesting');
    } else if (code === 0x7d || code === 0x5d) depth -= 1;
  }
}

function parseFile(source: string | object, field: keyof typeof fileLimits): Record<string, unknown> {
  if (typeof source !== 'string') {
    if (isRecord(source)) return source;
    throw invalid(field, 'a JSON object', describe(source));
  }
  const limit = fileLimits[field];
  if (source.length > limit) throw invalid(field, `at most ${limit} characters`, String(source.length));
  checkDepth(source, field);
  let value: unknown;
  try {
    value = JSON.parse(source.replace(/^\ufeff/, ''));
  } catch (cause) {
    throw invalid(field, 'JSON', `text of ${source.length} characters that does not parse`, cause);
  }
  if (!isRecord(value)) throw invalid(field, 'a JSON object', describe(value));
  return value;
}

function checkId(value: unknown, field: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value >= maximumVocabulary) {
    throw invalid(field, `a token id from 0 to ${maximumVocabulary - 1}`, describe(value));
  }
  return value;
}

const modelTypes = ['BPE', 'WordPiece', 'Unigram'];

/** Checks the vocabulary and merges, so that the library can't be made to build nonsense or to fail half-way. */
function checkModel(model: unknown): void {
  const field = 'tokenizerJson.model';
  if (!isRecord(model)) throw invalid(field, 'an object', describe(model));
  const { vocab, merges } = model;
  // Old files leave the type out; merges mean BPE, as the library reads them.
  const type = model.type ?? (Array.isArray(merges) ? 'BPE' : undefined);
  if (typeof type !== 'string' || !modelTypes.includes(type)) {
    throw invalid(`${field}.type`, modelTypes.join(', '), typeof type === 'string' ? 'another type' : describe(type));
  }
  if (type === 'Unigram') {
    if (!Array.isArray(vocab) || vocab.length === 0 || vocab.length > maximumVocabulary) {
      throw invalid(`${field}.vocab`, 'a list of [text, score]', describe(vocab));
    }
    for (const [i, entry] of vocab.entries()) {
      if (!Array.isArray(entry) || typeof entry[0] !== 'string' || typeof entry[1] !== 'number') {
        throw invalid(`${field}.vocab[${i}]`, '[text, score]', describe(entry));
      }
    }
    return;
  }
  if (!isRecord(vocab)) throw invalid(`${field}.vocab`, 'an object of text to id', describe(vocab));
  let count = 0;
  for (const token in vocab) {
    checkId(vocab[token], `${field}.vocab (entry ${count})`);
    count += 1;
    if (count > maximumVocabulary) throw invalid(`${field}.vocab`, `at most ${maximumVocabulary} entries`, 'more');
  }
  if (count === 0) throw invalid(`${field}.vocab`, 'at least one token', 'none');
  if (type !== 'BPE') return;
  if (!Array.isArray(merges) || merges.length > maximumVocabulary) {
    throw invalid(`${field}.merges`, 'a list of pairs', describe(merges));
  }
  for (const [i, merge] of merges.entries()) {
    const isPair = Array.isArray(merge)
      ? merge.length === 2 && typeof merge[0] === 'string' && typeof merge[1] === 'string'
      : typeof merge === 'string' && merge.includes(' ');
    if (!isPair || Array.isArray(merge) !== Array.isArray(merges[0])) {
      throw invalid(`${field}.merges[${i}]`, 'a pair of tokens, all written in one way', describe(merge));
    }
  }
}

function readAddedTokens(value: unknown): AddedTokenFile[] {
  if (value === undefined || value === null) return [];
  const field = 'tokenizerJson.added_tokens';
  if (!Array.isArray(value)) throw invalid(field, 'a list', describe(value));
  return value
    .map((entry: unknown, i): AddedTokenFile => {
      if (!isRecord(entry)) throw invalid(`${field}[${i}]`, 'an object', describe(entry));
      if (typeof entry.content !== 'string') {
        throw invalid(`${field}[${i}].content`, 'text', describe(entry.content));
      }
      const special = entry.special === true;
      return {
        id: checkId(entry.id, `${field}[${i}].id`),
        content: entry.content,
        special,
        normalized: typeof entry.normalized === 'boolean' ? entry.normalized : !special,
        lstrip: entry.lstrip === true,
        rstrip: entry.rstrip === true,
        singleWord: entry.single_word === true,
      };
    })
    .filter((token) => token.content !== '');
}

/** A special token is written as text, or as an object with its text in `content`. */
function tokenText(value: unknown): string | undefined {
  if (typeof value === 'string') return value;
  return isRecord(value) && typeof value.content === 'string' ? value.content : undefined;
}

const specialTokenNames = ['bos_token', 'eos_token', 'pad_token', 'unk_token', 'sep_token', 'cls_token', 'mask_token'];

/** One template, or a list of named ones of which `default` is taken. */
function readChatTemplate(value: unknown): string | undefined {
  if (value === undefined || value === null || typeof value === 'string') return value ?? undefined;
  const named = Array.isArray(value) ? value.filter(isRecord) : [];
  const chosen = named.find((entry) => entry.name === 'default') ?? named[0];
  if (typeof chosen?.template === 'string') return chosen.template;
  throw invalid('tokenizerConfigJson.chat_template', 'text, or a list of { name, template }', describe(value));
}

export interface TokenizerSources {
  /** tokenizer.json, as text or parsed. */
  readonly tokenizerJson: string | object;
  /** tokenizer_config.json: names of special tokens, and often the chat template. */
  readonly tokenizerConfigJson?: string | object | undefined;
  /** chat_template.jinja; wins over the one in the config. */
  readonly chatTemplate?: string | undefined;
  /** generation_config.json: further end-of-sequence ids. */
  readonly generationConfigJson?: string | object | undefined;
}

/** @throws `model_invalid` naming file and field when something is missing, malformed or above a limit */
export function readTokenizerFiles(sources: TokenizerSources): TokenizerFiles {
  const raw = parseFile(sources.tokenizerJson, 'tokenizerJson');
  const config = parseFile(sources.tokenizerConfigJson ?? {}, 'tokenizerConfigJson');
  const generation = parseFile(sources.generationConfigJson ?? {}, 'generationConfigJson');
  checkModel(raw.model);
  const specialTokens = Object.fromEntries(
    specialTokenNames.flatMap((name) => {
      const text = tokenText(config[name]);
      return text === undefined ? [] : [[name, text]];
    }),
  );
  const named = new Set([...Object.values(specialTokens), ...listOfTexts(config.additional_special_tokens)]);
  const eos = generation.eos_token_id ?? [];
  return {
    raw,
    // What the config calls special is special, even where tokenizer.json forgot to say so.
    addedTokens: readAddedTokens(raw.added_tokens).map((token) =>
      named.has(token.content) ? { ...token, special: true } : token,
    ),
    specialTokens,
    chatTemplate: sources.chatTemplate ?? readChatTemplate(config.chat_template),
    generationEosIds: (Array.isArray(eos) ? eos : [eos]).map((id, i) =>
      checkId(id, `generationConfigJson.eos_token_id[${i}]`),
    ),
  };
}

function listOfTexts(value: unknown): string[] {
  return Array.isArray(value) ? value.flatMap((entry) => tokenText(entry) ?? []) : [];
}
