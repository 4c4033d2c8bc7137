/** The tokenizer library behind types of our own (its declarations collapse to `any`), with its faults mended before the call. */
import * as library from '@huggingface/tokenizers';
import { complaint } from '@loopwright/protocol';

/** The parts of a library tokenizer that we drive ourselves. */
export interface LibraryTokenizer {
  readonly normalizer: ((text: string) => string) | null;
  /** `section_index` 0 marks the start of the input, where some vocabularies put a space. */
  readonly pre_tokenizer: ((text: string, options: { readonly section_index: number }) => string[]) | null;
  readonly model: ((words: readonly string[]) => string[]) & {
    readonly tokens_to_ids: ReadonlyMap<string, number>;
    readonly unk_token_id: number | undefined;
    /** Text by id; holes are undefined. */
    readonly vocab: readonly (string | undefined)[];
  };
  readonly decoder: ((tokens: readonly string[]) => string) | null;
  readonly post_processor:
    | ((tokens: readonly string[], pair: null, addSpecialTokens: boolean) => { readonly tokens: string[] })
    | null;
}

interface Library {
  readonly Tokenizer: new (tokenizer: object, config: object) => LibraryTokenizer;
}

/**
 * Files as the library reads them rightly: `Digits` splits at JavaScript's `\d` (0–9), the format means every numeric
 * character (½, ², Arabic digits), so it is replaced by the pattern that says so.
 */
function mend(component: unknown): unknown {
  if (Array.isArray(component)) return component.map(mend);
  if (typeof component !== 'object' || component === null) return component;
  const part = component as Readonly<Record<string, unknown>>; // true: a non-null object
  if (part.type === 'Digits') {
    const pattern = part.individual_digits === true ? '\\p{N}' : '\\p{N}+';
    return { type: 'Split', pattern: { Regex: pattern }, behavior: 'Isolated', invert: false };
  }
  if (part.type === 'Sequence') return { ...part, pretokenizers: mend(part.pretokenizers) };
  return part;
}

/**
 * Builds the library's tokenizer from a checked tokenizer.json, without added tokens: finding those is our own work.
 *
 * @throws `model_invalid` when a component is unknown or malformed
 */
export function createLibraryTokenizer(raw: Readonly<Record<string, unknown>>): LibraryTokenizer {
  const { Tokenizer } = library as unknown as Library; // true of version 0.2; the encoding tests fail should it change
  try {
    return new Tokenizer(
      {
        ...raw,
        normalizer: raw.normalizer ?? null,
        pre_tokenizer: mend(raw.pre_tokenizer ?? null),
        post_processor: raw.post_processor ?? null,
        decoder: raw.decoder ?? null,
        added_tokens: [],
      },
      {},
    );
  } catch (cause) {
    throw complaint({
      code: 'model_invalid',
      field: 'tokenizerJson',
      expected: 'components that this version knows',
      got: cause instanceof Error ? cause.message.slice(0, 200) : 'a component that could not be built',
      remedy:
        'restore the file from the place the model came from; if it is whole, the tokenizer is of a kind not yet read',
      cause,
    });
  }
}
