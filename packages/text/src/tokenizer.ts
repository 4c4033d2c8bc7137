/** The tokenizer of a model: text to token ids and back, and chats to token ids. */
import { complaint } from '@loopwright/protocol';
import { AddedTokenSplitter, type Piece } from './added-tokens.js';
import { encodeChat } from './encode-chat.js';
import { byteStreamDecoder, type StreamDecoder, windowStreamDecoder } from './stream-decoder.js';
import { ChatTemplate } from './template/chat-template.js';
import { type MarkedText, type MarkTargets, renderMarked } from './template/content-marks.js';
import { type ChatMessage, jsonValue, normalizeMessages, wellFormed } from './template/messages.js';
import { bytesOfToken, joinByteTokens } from './token-bytes.js';
import {
  type AddedTokenFile,
  readTokenizerFiles,
  type TokenizerFiles,
  type TokenizerSources,
} from './tokenizer-files.js';
import { createLibraryTokenizer, type LibraryTokenizer } from './tokenizers-library.js';
import { type TurnFormat, turnFormatOf } from './turns/turn-format.js';

export interface EncodeOptions {
  /** Add what the model's post-processor puts around a text, such as a beginning-of-sequence token; default false. */
  readonly addSpecialTokens?: boolean;
  /** Read control tokens written in the text as such; default false: content can't become a control token. */
  readonly parseSpecialTokens?: boolean;
}

export interface DecodeOptions {
  /** Leave control tokens out of the text; default true. */
  readonly skipSpecialTokens?: boolean;
}

/** Further keys are variables of the template, such as `enable_thinking`. */
export interface ChatTemplateOptions {
  /** End with the beginning of an assistant turn; default false. */
  readonly addGenerationPrompt?: boolean;
  /** Leave the last message open, so that the model goes on with it; default false. */
  readonly continueFinalMessage?: boolean;
  /** Tool definitions (JSON Schema), as the template expects them. */
  readonly tools?: readonly unknown[];
  readonly [variable: string]: unknown;
}

export interface EncodeChatOptions extends ChatTemplateOptions {
  /** Which assistant turns count as the model's; default `all`. */
  readonly turns?: 'all' | 'last';
}

/** A chat in tokens. */
export interface EncodedChat {
  readonly tokens: number[];
  /** Same length: true for tokens that the model would produce, the one that ends its turn included. */
  readonly assistantMask: boolean[];
}

/** A chat as its template wrote it. */
export interface RenderedChat {
  readonly text: string;
  /** Same length; characters of content that control tokens have too are replaced, so that those in it are the template's. */
  readonly marked: string;
  /**
   * Ids of a part of the text, by its characters; by default of the whole. Control tokens are read only where the template
   * wrote them, and only where the part has them whole.
   */
  encode(start?: number, end?: number): number[];
}

/** Owns nothing but memory; safe to share. Ids are those of the model's vocabulary. */
export interface Tokenizer {
  /** Highest id + 1; a model's matrices may be padded beyond it. */
  readonly vocabSize: number;
  /** Ids that end a generation. */
  readonly eosTokenIds: readonly number[];
  readonly hasChatTemplate: boolean;
  /** Which marks the turns have that the model writes: for `turnParser`. */
  readonly turnFormat: TurnFormat;
  /** The text of a control token: a special one, or one that the chat template uses as a mark, such as `<tool_call>`. Undefined for every other id. */
  controlToken(id: number): string | undefined;
  /** The bytes that a token adds to a text, control tokens and parts of characters included; none for ids without a token. */
  tokenBytes(id: number): Uint8Array;
  /**
   * Ids of `text`; [] for ''. Lone surrogates count as U+FFFD, and bytes without a token are dropped, as in the
   * reference. Special tokens are read on request only; others that were added to the vocabulary are always read (not so in a chat: see `renderChat`).
   */
  encode(text: string, options?: EncodeOptions): number[];
  /**
   * Text of `ids`; '' for []. Ids beyond the vocabulary, which padded models can sample, give nothing.
   * @throws `invalid_argument` for an id that is not a whole number ≥ 0
   */
  decode(ids: ArrayLike<number>, options?: DecodeOptions): string;
  /** For text that arrives token by token. */
  streamDecoder(options?: DecodeOptions): StreamDecoder;
  /**
   * The chat as the model's template writes it, in tokens. What messages, tools and variables say never becomes a
   * control token, be it special or a mark of the template.
   * @throws `invalid_argument` without a template, or when the template refuses the messages
   */
  applyChatTemplate(messages: readonly ChatMessage[], options?: ChatTemplateOptions): number[];
  /** The same as text and tokens, of which parts can be taken. */
  renderChat(messages: readonly ChatMessage[], options?: ChatTemplateOptions): RenderedChat;
  /** The same as text. Encoding this text with `parseSpecialTokens` would trust the content: prefer `applyChatTemplate`. */
  renderChatTemplate(messages: readonly ChatMessage[], options?: ChatTemplateOptions): string;
  /**
   * A chat in tokens, with a mask of the assistant's. Turns are encoded one by one, so that each begins exactly
   * where sampling after `addGenerationPrompt` would.
   * @throws `invalid_argument` when the template writes an earlier turn otherwise once later ones follow (some drop
   *   reasoning): then use `turns: 'last'`, or one chat per turn
   */
  encodeChat(messages: readonly ChatMessage[], options?: EncodeChatOptions): EncodedChat;
}

export interface LoadTokenizerOptions extends TokenizerSources {
  /** Clock for templates that write today's date; default the system's. */
  readonly now?: () => Date;
  /** Runs what the expressions of the files are applied in; default without a limit. On Node: `withinTime`. */
  readonly bounded?: <T>(work: () => T) => T;
}

/**
 * Builds a tokenizer from the files of a Hugging Face model directory.
 *
 * @throws `model_invalid` when a file is malformed, cut or above a limit
 * @example
 * const tokenizer = loadTokenizer({ tokenizerJson: await response.text() });
 * tokenizer.decode(tokenizer.encode('12+7=')); // '12+7='
 */
export function loadTokenizer({
  now = () => new Date(),
  bounded = (work) => work(),
  ...sources
}: LoadTokenizerOptions): Tokenizer {
  return bounded(() => new ModelTokenizer(readTokenizerFiles(sources), { now, bounded }));
}

/** Finds added tokens in text as it came and, those that are so marked, in normalised text. */
interface Splitters {
  readonly raw: AddedTokenSplitter;
  readonly normalized: AddedTokenSplitter;
}

class ModelTokenizer implements Tokenizer {
  readonly vocabSize: number;
  readonly eosTokenIds: readonly number[];
  readonly hasChatTemplate: boolean;
  readonly turnFormat: TurnFormat;
  readonly #library: LibraryTokenizer;
  readonly #files: TokenizerFiles;
  readonly #textById = new Map<number, string>();
  readonly #specialIds: ReadonlySet<number>;
  /** Special tokens, and the marks of the template. */
  readonly #controlTokens: ReadonlyMap<number, string>;
  readonly #withSpecials: Splitters;
  readonly #withoutSpecials: Splitters;
  /** For text of a template, and for what stands in it as content. */
  readonly #inTemplate: AddedTokenSplitter;
  readonly #inContent: Splitters;
  readonly #byteLevel: boolean;
  readonly #byteFallback: boolean;
  readonly #template: ChatTemplate | undefined;
  readonly #bounded: <T>(work: () => T) => T;

  constructor(files: TokenizerFiles, { now, bounded }: Required<Pick<LoadTokenizerOptions, 'now' | 'bounded'>>) {
    this.#bounded = bounded;
    const library = createLibraryTokenizer(files.raw);
    this.#library = library;
    this.#files = files;
    const { addedTokens, specialTokens, chatTemplate } = files;
    for (const token of addedTokens) this.#textById.set(token.id, token.content);
    this.turnFormat = turnFormatOf(chatTemplate, addedTokens);
    const { markTokens } = this.turnFormat;
    const isControl = ({ special, content }: AddedTokenFile): boolean => special || markTokens.includes(content);
    this.#specialIds = new Set(addedTokens.filter((token) => token.special).map((token) => token.id));
    this.#controlTokens = new Map(addedTokens.filter(isControl).map(({ id, content }) => [id, content]));
    this.vocabSize = addedTokens.reduce((size, { id }) => Math.max(size, id + 1), library.model.vocab.length);
    const eos = specialTokens.eos_token === undefined ? undefined : this.#idOf(specialTokens.eos_token);
    this.eosTokenIds = [...new Set([...files.generationEosIds, ...(eos === undefined ? [] : [eos])])];
    this.#withSpecials = splittersFor(addedTokens, library);
    this.#withoutSpecials = splittersFor(
      addedTokens.filter((token) => !token.special),
      library,
    );
    const isRaw = (token: AddedTokenFile): boolean => !token.normalized || library.normalizer === null;
    this.#inTemplate = new AddedTokenSplitter(addedTokens.filter((token) => isControl(token) || isRaw(token)));
    this.#inContent = splittersFor(
      addedTokens.filter((token) => !isControl(token)),
      library,
    );
    const decoders = decoderTypes(files.raw.decoder);
    this.#byteLevel = decoders.length === 1 && decoders[0] === 'ByteLevel';
    this.#byteFallback = decoders.includes('ByteFallback');
    this.hasChatTemplate = chatTemplate !== undefined;
    this.#template =
      chatTemplate === undefined ? undefined : new ChatTemplate({ source: chatTemplate, specialTokens, now });
  }

  encode(text: string, { addSpecialTokens = false, parseSpecialTokens = false }: EncodeOptions = {}): number[] {
    if (typeof text !== 'string') {
      throw complaint({ field: 'text', expected: 'a string', got: text === null ? 'null' : typeof text });
    }
    const splitters = parseSpecialTokens ? this.#withSpecials : this.#withoutSpecials;
    const pieces = splitters.raw.split(wellFormed(text));
    const ids = this.#bounded(() => this.#encodePieces(pieces, splitters, { sectionIndex: 0 }));
    if (!addSpecialTokens) return ids;
    const { before, after } = this.#affixes();
    return [...before, ...ids, ...after];
  }

  decode(ids: ArrayLike<number>, { skipSpecialTokens = true }: DecodeOptions = {}): string {
    const kept: number[] = [];
    for (let i = 0; i < ids.length; i++) {
      const id = ids[i];
      if (typeof id !== 'number' || !Number.isInteger(id) || id < 0) {
        const got = typeof id === 'number' ? String(id) : typeof id;
        throw complaint({ field: `ids[${i}]`, expected: 'a token id', got });
      }
      if (this.#text(id) !== undefined && !(skipSpecialTokens && this.#specialIds.has(id))) kept.push(id);
    }
    if (!this.#byteLevel) return this.#bounded(() => this.#decodeByLibrary(kept));
    const parts = kept.map((id) => this.#bytes(id));
    const bytes = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes);
  }

  streamDecoder(options: DecodeOptions = {}): StreamDecoder {
    const { skipSpecialTokens = true } = options;
    if (!this.#byteLevel) return windowStreamDecoder((ids) => this.decode(ids, options));
    const nothing = new Uint8Array(0);
    return byteStreamDecoder((id) => (skipSpecialTokens && this.#specialIds.has(id) ? nothing : this.#bytes(id)));
  }

  controlToken(id: number): string | undefined {
    return this.#controlTokens.get(id);
  }

  tokenBytes(id: number): Uint8Array {
    return this.#byteLevel
      ? this.#bytes(id)
      : new TextEncoder().encode(this.decode([id], { skipSpecialTokens: false }));
  }

  renderChatTemplate(messages: readonly ChatMessage[], options: ChatTemplateOptions = {}): string {
    const { targets, render } = this.#rendering(messages, options);
    return render(targets);
  }

  renderChat(messages: readonly ChatMessage[], options: ChatTemplateOptions = {}): RenderedChat {
    const { targets, render } = this.#rendering(messages, options);
    const { plainMarks } = this.turnFormat;
    const specials = [...this.#controlTokens.values()].filter((content) => !plainMarks.includes(content));
    const text = renderMarked({ specials, plainMarks }, targets, render);
    return {
      text: text.plain,
      marked: text.marked,
      encode: (start = 0, end = text.plain.length) =>
        this.#bounded(() => this.#encodeMarked(text.marked.slice(start, end), text, { sectionIndex: start })),
    };
  }

  applyChatTemplate(messages: readonly ChatMessage[], options: ChatTemplateOptions = {}): number[] {
    return this.renderChat(messages, options).encode();
  }

  encodeChat(messages: readonly ChatMessage[], options: EncodeChatOptions = {}): EncodedChat {
    return encodeChat(this, messages, options);
  }

  #rendering(
    messages: readonly ChatMessage[],
    { addGenerationPrompt = false, continueFinalMessage = false, tools, ...variables }: ChatTemplateOptions,
  ): { targets: MarkTargets; render: (input: MarkTargets) => string } {
    const template = this.#template;
    if (template === undefined) {
      throw complaint({
        field: 'tokenizer',
        expected: 'a model with a chat template',
        got: 'a model without one',
        remedy: 'encode the prompt as text, or load the tokenizer with chatTemplate',
      });
    }
    const targets: MarkTargets = {
      messages: normalizeMessages(messages),
      tools: tools === undefined ? null : jsonValue(tools, 'tools'),
      variables: Object.fromEntries(
        Object.entries(variables)
          .filter(([, value]) => value !== undefined)
          .map(([name, value]) => [name, jsonValue(value, name)]),
      ),
    };
    const render = (input: MarkTargets): string =>
      template.render({ ...input, addGenerationPrompt, continueFinalMessage });
    return { targets, render };
  }

  /** Ids of marked text: control tokens where the template wrote them, everything else as text. */
  #encodeMarked(marked: string, { unmark }: MarkedText, section: { sectionIndex: number }): number[] {
    return this.#inTemplate.split(marked).flatMap((piece) => {
      if (piece.type === 'token') {
        section.sectionIndex += 1;
        return [piece.id];
      }
      return this.#encodePieces(this.#inContent.raw.split(unmark(piece.text)), this.#inContent, section);
    });
  }

  #encodePieces(pieces: readonly Piece[], { normalized }: Splitters, section: { sectionIndex: number }): number[] {
    const { normalizer } = this.#library;
    return pieces.flatMap((piece) => {
      const sectionIndex = section.sectionIndex;
      section.sectionIndex += 1;
      if (piece.type === 'token') return [piece.id];
      const text = normalizer === null ? piece.text : normalizer(piece.text);
      return normalized
        .split(text)
        .flatMap((inner) => (inner.type === 'token' ? [inner.id] : this.#encodeWords(inner.text, sectionIndex)));
    });
  }

  #encodeWords(text: string, sectionIndex: number): number[] {
    const { pre_tokenizer: preTokenizer, model } = this.#library;
    const words = preTokenizer === null ? [text] : preTokenizer(text, { section_index: sectionIndex });
    return model(words).flatMap((token) => model.tokens_to_ids.get(token) ?? model.unk_token_id ?? []);
  }

  /** Ids that the post-processor puts around any text, found with a text of one made-up token. */
  #affixes(): { before: number[]; after: number[] } {
    const body = '\u0000body';
    const tokens = this.#library.post_processor?.([body], null, true).tokens ?? [body];
    const at = tokens.indexOf(body);
    const ids = (part: readonly string[]): number[] => part.flatMap((token) => this.#idOf(token) ?? []);
    return { before: ids(tokens.slice(0, at)), after: ids(tokens.slice(at + 1)) };
  }

  #decodeByLibrary(ids: readonly number[]): string {
    const tokens = ids.map((id) => this.#text(id) ?? '');
    const { decoder } = this.#library;
    if (decoder === null) return tokens.join(' ');
    return tokens.length === 0 ? '' : decoder(this.#byteFallback ? joinByteTokens(tokens) : tokens);
  }

  #idOf(token: string): number | undefined {
    return (
      this.#files.addedTokens.find((added) => added.content === token)?.id ??
      this.#library.model.tokens_to_ids.get(token)
    );
  }

  #text(id: number): string | undefined {
    return this.#textById.get(id) ?? this.#library.model.vocab[id];
  }

  #bytes(id: number): Uint8Array {
    const added = this.#textById.get(id);
    if (added !== undefined) return new TextEncoder().encode(added);
    const token = this.#library.model.vocab[id];
    return token === undefined ? new Uint8Array(0) : bytesOfToken(token);
  }
}

function splittersFor(tokens: TokenizerFiles['addedTokens'], { normalizer }: LibraryTokenizer): Splitters {
  const isNormalized = (token: { readonly normalized: boolean }): boolean => token.normalized && normalizer !== null;
  return {
    raw: new AddedTokenSplitter(tokens.filter((token) => !isNormalized(token))),
    normalized: new AddedTokenSplitter(
      tokens.filter(isNormalized).map((token) => ({ ...token, content: normalizer?.(token.content) ?? token.content })),
    ),
  };
}

/** Types of a decoder's steps, in order. */
function decoderTypes(decoder: unknown): string[] {
  if (typeof decoder !== 'object' || decoder === null) return [];
  const { type, decoders } = decoder as { readonly type?: unknown; readonly decoders?: unknown }; // true: any object may be read so
  if (type === 'Sequence') return Array.isArray(decoders) ? decoders.flatMap(decoderTypes) : [];
  return typeof type === 'string' ? [type] : [];
}
