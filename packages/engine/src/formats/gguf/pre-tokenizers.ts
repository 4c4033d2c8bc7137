/**
 * How byte-level tokenizers cut a text before they merge bytes, by the name that GGUF files give the way (`tokenizer.ggml.pre`).
 * The files hold no more than the name; a tokenizer.json spells the way out.
 */

export interface PreTokenizer {
  /** Of tokenizer.json. */
  readonly normalizer: Readonly<Record<string, unknown>> | null;
  readonly preTokenizer: Readonly<Record<string, unknown>>;
  /** A word that is a token is taken whole, whatever merges say. */
  readonly ignoreMerges: boolean;
  /** Whether a text begins with the token for that, where the file doesn't say. */
  readonly addBos: boolean;
}

function byteLevel(cutsWords: boolean) {
  return { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: cutsWords };
}

/** Words, digits in groups of `digits`, signs, and white space, each with the space before it or none. */
function splitByPattern(digits: string) {
  const Regex = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+`;
  const split = { type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false };
  return { type: 'Sequence', pretokenizers: [split, byteLevel(false)] };
}

export const preTokenizers = {
  smollm: {
    normalizer: null,
    preTokenizer: { type: 'Sequence', pretokenizers: [{ type: 'Digits', individual_digits: true }, byteLevel(true)] },
    ignoreMerges: false,
    addBos: false,
  },
  qwen2: { normalizer: { type: 'NFC' }, preTokenizer: splitByPattern('\\p{N}'), ignoreMerges: false, addBos: false },
  'llama-bpe': { normalizer: null, preTokenizer: splitByPattern('\\p{N}{1,3}'), ignoreMerges: true, addBos: true },
} as const satisfies Record<string, PreTokenizer>;

export type PreTokenizerName = keyof typeof preTokenizers;

export const preTokenizerNames = Object.keys(preTokenizers) as readonly PreTokenizerName[]; // The keys of a constant.

/** The way that a parsed tokenizer.json cuts; undefined where it is none of these. */
export function findPreTokenizer(tokenizer: {
  readonly normalizer: unknown;
  readonly preTokenizer: unknown;
  readonly ignoreMerges: boolean;
}): PreTokenizerName | undefined {
  const wanted = canonical([tokenizer.normalizer ?? null, tokenizer.preTokenizer ?? null, tokenizer.ignoreMerges]);
  return preTokenizerNames.find((name) => {
    const { normalizer, preTokenizer, ignoreMerges } = preTokenizers[name];
    return canonical([normalizer, preTokenizer, ignoreMerges]) === wanted;
  });
}

/** JSON with sorted keys, without what concerns positions in the text alone. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (key, item: unknown) => {
    if (key === 'trim_offsets') return undefined;
    if (typeof item !== 'object' || item === null || Array.isArray(item)) return item;
    return Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)));
  });
}
