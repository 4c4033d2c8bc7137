/**
 * The tokens of an episode. What the model sampled is kept as it was sampled, id by id, and exactly that is trained: a chat that is
 * decoded and encoded again can come out in other ids. Between two answers stands what the template writes.
 *
 * A template may write an earlier turn otherwise once later ones follow (some drop reasoning, some print calls anew). What the model
 * sees then does not go on from what it has sampled, so a new sequence begins there; the answers of the old one keep their place in it.
 */
import type { SampledTokens } from '@loopwright/client';
import { LoopwrightError } from '@loopwright/protocol';
import type { ChatMessage, ChatTemplateOptions, EncodedChat, Tokenizer } from '@loopwright/text';

/** An answer and what stands before it, since the answer before that. */
export interface Segment {
  readonly context: readonly number[];
  readonly answer: SampledTokens;
  /** Of the model, from 0. */
  readonly turn: number;
}

/** What one forward pass can go over: each answer follows from all that is before it. */
export type EpisodeSequence = readonly Segment[];

export interface TranscriptOptions {
  readonly tokenizer: Tokenizer;
  /** Tools and variables of the template. */
  readonly template: ChatTemplateOptions;
}

export class Transcript {
  readonly #options: TranscriptOptions;
  readonly #closed: EpisodeSequence[] = [];
  #segments: Segment[] = [];
  /** What stands before the answer that comes next. */
  #context: readonly number[] = [];
  /** Messages of the assistant that the sequence began with: theirs are no answers of this episode. */
  #given = 0;
  #turns = 0;
  #retokenized = 0;

  constructor(options: TranscriptOptions) {
    this.#options = options;
  }

  /** In order; one, unless the template rewrote what was said. */
  get sequences(): readonly EpisodeSequence[] {
    return this.#segments.length === 0 ? this.#closed : [...this.#closed, this.#segments];
  }

  /** Answers whose text has other ids when it is encoded again. */
  get retokenized(): number {
    return this.#retokenized;
  }

  /** The prompt of the next answer. `messages` begin with those of the prompt before, and the answer to it. */
  prompt(messages: readonly ChatMessage[]): number[] {
    const context = this.#segments.length === 0 ? undefined : this.#continuation(messages);
    if (context === undefined) {
      if (this.#segments.length > 0) this.#closed.push(this.#segments);
      this.#segments = [];
      this.#given = messages.filter(({ role }) => role === 'assistant').length;
      const { tokenizer, template } = this.#options;
      this.#context = tokenizer.applyChatTemplate(messages, { ...template, addGenerationPrompt: true });
    } else this.#context = context;
    return [
      ...this.#segments.flatMap(({ context: before, answer }) => [...before, ...answer.tokens]),
      ...this.#context,
    ];
  }

  answered(answer: SampledTokens): void {
    this.#segments.push({ context: this.#context, answer, turn: this.#turns });
    this.#turns += 1;
  }

  /** What comes after the last answer; undefined where the template does not go on from what was sampled. */
  #continuation(messages: readonly ChatMessage[]): number[] | undefined {
    const parts = this.#parts(messages);
    if (parts === undefined || parts.length !== this.#segments.length) return undefined;
    let missing: readonly number[] = []; // the end of the turn before, where the model did not write it
    for (const [i, { context, answer }] of this.#segments.entries()) {
      const part = parts[i]!;
      if (!equal([...missing, ...part.context], context)) return undefined;
      const rest = unwritten(this.#options.tokenizer, answer.tokens, part.answer);
      if (rest === undefined) return undefined;
      missing = rest;
      const isNewest = i === this.#segments.length - 1;
      if (isNewest && !equal([...answer.tokens, ...rest], part.answer)) this.#retokenized += 1;
    }
    return [...missing, ...parts.at(-1)!.after];
  }

  /** The rendering, cut before and behind each answer of this sequence. */
  #parts(messages: readonly ChatMessage[]): { context: number[]; answer: number[]; after: number[] }[] | undefined {
    const { tokenizer, template } = this.#options;
    let encoded: EncodedChat;
    try {
      encoded = tokenizer.encodeChat(messages, { ...template, addGenerationPrompt: true });
    } catch (error) {
      if (LoopwrightError.isInstance(error) && error.code === 'invalid_argument') return undefined; // an earlier turn is written otherwise
      throw error;
    }
    const { tokens, assistantMask } = encoded;
    const runs: [number, number][] = [];
    for (let at = 0; at < tokens.length; at++) {
      if (assistantMask[at] !== true) continue;
      if (assistantMask[at - 1] === true) runs.at(-1)![1] = at + 1;
      else runs.push([at, at + 1]);
    }
    const own = runs.slice(this.#given);
    return own.map(([start, end], i) => ({
      context: tokens.slice(i === 0 ? 0 : own[i - 1]![1], start),
      answer: tokens.slice(start, end),
      after: tokens.slice(end),
    }));
  }
}

/** The token that the template writes at the end of an answer and the model did not; undefined where the two say different things. */
function unwritten(
  tokenizer: Tokenizer,
  sampled: readonly number[],
  rendered: readonly number[],
): readonly number[] | undefined {
  if (equal(sampled, rendered)) return [];
  const textOf = (ids: readonly number[]): string => tokenizer.decode(ids, { skipSpecialTokens: false });
  const [said, written] = [textOf(sampled), textOf(rendered)];
  if (said === written) return [];
  const last = rendered.slice(-1);
  const isMark = last.length === 1 && tokenizer.controlToken(last[0]!) !== undefined;
  return isMark && said + textOf(last) === written ? last : undefined;
}

function equal(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((id, i) => id === b[i]);
}
