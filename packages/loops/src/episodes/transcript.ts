/**
 * The tokens of an episode. What the model sampled is kept as it was sampled, id by id, and exactly that is trained: a chat that is
 * decoded and encoded again can come out in other ids. Between two answers stands what the template writes.
 *
 * A template may write an earlier turn otherwise once later ones follow (some drop reasoning, some print calls anew). What the model
 * sees then does not go on from what it has sampled, so a new sequence begins there; the answers of the old one keep their place in it.
 */
import type { SampledTokens } from '@loopwright/client';
import type { ChatMessage, RenderedMessages, Renderer, RenderOptions } from '@loopwright/text';

/** An answer and what stands before it, since the answer before that. */
export interface Segment {
  readonly context: readonly number[];
  readonly answer: SampledTokens;
  /** Of the model, from 0. */
  readonly turn: number;
}

/** What one forward pass can go over: each answer follows from all that is before it. */
export type EpisodeSequence = readonly Segment[];

export class Transcript {
  readonly #renderer: Renderer;
  readonly #options: Pick<RenderOptions, 'tools' | 'variables'>;
  /** By the index of their message. */
  readonly #drawn = new Map<number, readonly number[]>();
  readonly #closed: EpisodeSequence[] = [];
  #segments: Segment[] = [];
  /** What was given and sampled of the sequence so far. */
  #whole: readonly number[] = [];
  /** What stands before the answer that comes next. */
  #context: readonly number[] = [];
  #messages = 0;

  /** @param options what the template is given besides the messages */
  constructor(renderer: Renderer, options: Pick<RenderOptions, 'tools' | 'variables'>) {
    this.#renderer = renderer;
    this.#options = options;
  }

  /** In order; one, unless the template rewrote what was said. */
  get sequences(): readonly EpisodeSequence[] {
    return this.#segments.length === 0 ? this.#closed : [...this.#closed, this.#segments];
  }

  /** The prompt of the next answer. `messages` begin with those of the prompt before, and the answer to it. */
  prompt(messages: readonly ChatMessage[]): Pick<RenderedMessages, 'tokens' | 'thinkingOpen'> {
    const options = { ...this.#options, addGenerationPrompt: true, drawn: this.#drawn };
    const { tokens, thinkingOpen } = this.#renderer.render(messages, options);
    const goesOn = this.#whole.every((id, at) => tokens[at] === id);
    if (!goesOn) {
      this.#closed.push(this.#segments);
      this.#segments = [];
    }
    this.#context = goesOn ? tokens.slice(this.#whole.length) : tokens;
    this.#whole = tokens;
    this.#messages = messages.length;
    return { tokens, thinkingOpen };
  }

  /** The answer to the last prompt, whose message comes behind those of the prompt. */
  answered(answer: SampledTokens): void {
    this.#segments.push({ context: this.#context, answer, turn: this.#drawn.size });
    this.#drawn.set(this.#messages, answer.tokens);
    this.#whole = [...this.#whole, ...answer.tokens];
  }
}
