/** A renderer: messages to tokens and back in a model's own format, by its template, its tokenizer and the parser of its turns. */
import { complaint } from '@loopwright/protocol';
import type { ChatMessage } from '../template/messages.js';
import { type ChatTemplateOptions, type LoadTokenizerOptions, loadTokenizer, type Tokenizer } from '../tokenizer.js';
import { endsInThought } from '../turns/ends-in-thought.js';
import { type ChatFamily, familyMarks } from './families.js';
import { commonPrefix, messageRanges } from './message-ranges.js';
import { type ParsedTurn, type ParseOptions, parseTurn } from './parse-turn.js';
import { type PrefixBreak, prefixBreaks } from './prefix-breaks.js';
import { prepareMessages } from './prepare-messages.js';
import { type Produced, tokensOf } from './rendered-tokens.js';

export interface RenderOptions {
  /** Tool definitions (JSON Schema), as templates take them. */
  readonly tools?: readonly unknown[];
  /** Whether the model is to reason, where its template has a switch for that; default what the template does by itself. */
  readonly thinking?: boolean;
  /** End with the beginning of a turn of the model; default false. */
  readonly addGenerationPrompt?: boolean;
  /** Leave the last message open, so that the model goes on with it; default false. */
  readonly continueFinalMessage?: boolean;
  /** Further variables of the template, such as `reasoning_effort`. */
  readonly variables?: Readonly<Record<string, unknown>>;
  /**
   * Tokens that the model drew, by the index of their message: they stand in the rendering as they were drawn, where their text is what the template writes there. Otherwise the template's text
   * is encoded, and `turns` tells it by `asDrawn: false`.
   */
  readonly drawn?: ReadonlyMap<number, ArrayLike<number>>;
}

/** Indices of tokens: from `start` up to, not including, `end`. */
export interface TokenSpan {
  readonly start: number;
  readonly end: number;
}

/** The tokens of a turn that the model produces, the one that ends it included. */
export interface TurnSpan extends TokenSpan {
  /** Index of its message. */
  readonly message: number;
  /** They are those given as `drawn`. */
  readonly asDrawn: boolean;
}

export interface RenderedMessages {
  readonly tokens: number[];
  /** What the template wrote. */
  readonly text: string;
  /** One for each message, its marks included; empty for one that the template leaves out or moves into another. */
  readonly spans: readonly TokenSpan[];
  /** Turns of the assistant, in order. */
  readonly turns: readonly TurnSpan[];
  /** Same length as the tokens: true for those that the model produces. */
  readonly producedMask: boolean[];
  /** The prompt ends within the reasoning of the turn: for `parse`. */
  readonly thinkingOpen: boolean;
}

export interface Renderer {
  readonly family: ChatFamily;
  readonly tokenizer: Tokenizer;
  /** Ids that end a turn of the model: the format's own, and the end-of-sequence ids of the files. */
  readonly stopTokenIds: readonly number[];
  /**
   * A chat in tokens. Content never becomes a control token. Each turn of the assistant is encoded by itself, so that it begins where
   * sampling would.
   *
   * @throws `invalid_argument` without a template, where the template refuses the messages, or for `thinking` where it has no such switch
   */
  render(messages: readonly ChatMessage[], options?: RenderOptions): RenderedMessages;
  /** A turn of the model as a message; `tokens` are those that were drawn, the one that ended the turn included. Never throws for what a model wrote. */
  parse(tokens: ArrayLike<number>, options?: ParseOptions): ParsedTurn;
  /**
   * Where the template is not prefix-preserving: turns of the assistant whose tokens, or those before them, are written otherwise once the next turn begins. Empty
   * where one sequence can hold the whole chat. `messages` with what follows the last turn; that turn itself is not judged.
   *
   * @throws as `render`
   */
  prefixBreaks(
    messages: readonly ChatMessage[],
    options?: Omit<RenderOptions, 'addGenerationPrompt' | 'drawn'>,
  ): PrefixBreak[];
}

/**
 * The renderer of a model, chosen by its chat template.
 *
 * @param source a tokenizer, or the files of one
 * @throws `model_invalid` when a file is malformed; `invalid_argument` when there is no template
 * @example
 * const renderer = rendererFor(tokenizer);
 * const { tokens } = renderer.render([{ role: 'user', content: '12 + 7?' }], { addGenerationPrompt: true });
 */
export function rendererFor(source: Tokenizer | LoadTokenizerOptions): Renderer {
  const tokenizer = 'tokenizerJson' in source ? loadTokenizer(source) : source;
  if (!tokenizer.hasChatTemplate) {
    throw complaint({
      field: 'tokenizer',
      expected: 'a model with a chat template',
      got: 'a model without one',
      remedy: 'load the tokenizer with chatTemplate, or encode prompts as text',
    });
  }
  return new TemplateRenderer(tokenizer);
}

class TemplateRenderer implements Renderer {
  readonly family: ChatFamily;
  readonly tokenizer: Tokenizer;
  readonly stopTokenIds: readonly number[];
  readonly #turnEndIds: readonly number[];

  constructor(tokenizer: Tokenizer) {
    this.tokenizer = tokenizer;
    this.family = tokenizer.turnFormat.family;
    this.#turnEndIds = familyMarks[this.family].turnEnds.flatMap((mark) => controlIds(tokenizer, mark));
    this.stopTokenIds = [...new Set([...this.#turnEndIds, ...tokenizer.eosTokenIds])];
  }

  render(
    given: readonly ChatMessage[],
    { addGenerationPrompt = false, continueFinalMessage = false, drawn, ...rest }: RenderOptions = {},
  ): RenderedMessages {
    const messages = prepareMessages(given, this.family);
    const options = this.#templateOptions(rest);
    const chat = this.tokenizer.renderChat(messages, { ...options, addGenerationPrompt, continueFinalMessage });
    const render = (other: readonly ChatMessage[]): string =>
      this.tokenizer.renderChatTemplate(other, { ...options, addGenerationPrompt, continueFinalMessage });
    const ranges = messageRanges(chat, messages, { marks: familyMarks[this.family], render });
    const beginning = this.#turnBeginning(messages, options);
    const produced = messages.flatMap(({ role }, message): Produced[] => {
      const { start, end } = ranges[message]!;
      if (role !== 'assistant' || start === end) return [];
      return [
        { message, ...producedRange(chat.marked.slice(start, end), start, { beginning, ends: this.#endTexts() }) },
      ];
    });
    const rendered = tokensOf(chat, { tokenizer: this.tokenizer, ranges, produced, drawn });
    const thinkingOpen =
      addGenerationPrompt && this.tokenizer.turnFormat.thinking && endsInThought(this.tokenizer, rendered.tokens);
    return { ...rendered, text: chat.text, thinkingOpen };
  }

  parse(tokens: ArrayLike<number>, options: ParseOptions = {}): ParsedTurn {
    const { stopTokenIds } = this;
    return parseTurn(this.tokenizer, tokens, { ...options, stopTokenIds, turnEndIds: this.#turnEndIds });
  }

  prefixBreaks(messages: readonly ChatMessage[], options: RenderOptions = {}): PrefixBreak[] {
    return prefixBreaks(this, messages, options);
  }

  #endTexts(): readonly string[] {
    const { messageEnds } = familyMarks[this.family];
    return messageEnds.length > 0
      ? messageEnds
      : this.tokenizer.eosTokenIds.flatMap((id) => this.tokenizer.controlToken(id) ?? []);
  }

  /** What a template puts in front of a turn of the model, as far as it always does. */
  #turnBeginning(messages: readonly ChatMessage[], options: ChatTemplateOptions): string {
    const first = messages.findIndex(({ role }) => role === 'assistant');
    const before = first > 0 ? messages.slice(0, first) : messages;
    try {
      const without = this.tokenizer.renderChatTemplate(before, options);
      const whole = this.tokenizer.renderChatTemplate(before, { ...options, addGenerationPrompt: true });
      return whole.slice(commonPrefix(without, whole));
    } catch {
      return ''; // a chat that the template refuses unless it goes on
    }
  }

  #templateOptions({ tools, thinking, variables = {} }: RenderOptions): ChatTemplateOptions {
    return { ...variables, ...this.#thinking(thinking), ...(tools === undefined ? {} : { tools }) };
  }

  #thinking(thinking: boolean | undefined): { readonly enable_thinking?: boolean } {
    if (thinking === undefined) return {};
    const { turnFormat } = this.tokenizer;
    if (turnFormat.thinkingSwitch) return { enable_thinking: thinking };
    const always = turnFormat.thinking || this.family === 'gpt-oss';
    if (thinking === always) return {};
    throw complaint({
      field: 'thinking',
      expected: `${always}, or to be left out: the template of this model has no switch for it`,
      got: String(thinking),
      remedy:
        this.family === 'gpt-oss'
          ? 'leave it out; variables: { reasoning_effort } asks for less'
          : 'leave it out, or take a model whose template knows enable_thinking',
    });
  }
}

/** Within a message of the assistant: behind what the template puts in front, up to the mark that ends it. */
function producedRange(
  written: string,
  offset: number,
  { beginning, ends }: { readonly beginning: string; readonly ends: readonly string[] },
): { readonly start: number; readonly end: number } {
  // Templates with a switch put an empty thought in front where the model is not to think, and none into earlier turns.
  const header = beginning.split('<think>')[0]!;
  const front = [beginning, header].find((text) => written.startsWith(text))?.length ?? commonPrefix(written, header);
  const trimmed = written.trimEnd();
  const end = ends.some((mark) => trimmed.endsWith(mark)) ? trimmed.length : written.length;
  return { start: offset + front, end: offset + Math.max(front, end) };
}

/** The id of a control token by its text, where the vocabulary has it. */
function controlIds(tokenizer: Tokenizer, text: string): number[] {
  const ids = tokenizer.encode(text, { parseSpecialTokens: true });
  return ids.length === 1 && tokenizer.controlToken(ids[0]!) === text ? ids : [];
}
