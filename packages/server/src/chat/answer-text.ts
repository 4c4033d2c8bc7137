/** The text of one sampled answer, as its tokens come. */
import type { Tokenizer } from '@loopwright/text';
import { UntilStop } from '@loopwright/text';

export class AnswerText {
  readonly #tokenizer: Tokenizer;
  readonly #decoder: ReturnType<Tokenizer['streamDecoder']>;
  readonly #untilStop: UntilStop;
  #next = 0;

  /** @param stop stop strings, which are no part of the answer */
  constructor(tokenizer: Tokenizer, stop: readonly string[]) {
    this.#tokenizer = tokenizer;
    this.#decoder = tokenizer.streamDecoder();
    this.#untilStop = new UntilStop(stop);
  }

  /** What the token at a position adds to the text; nothing for one that came before, as when an operation is begun again. */
  push(position: number, id: number): string {
    if (position !== this.#next) return '';
    this.#next++;
    if (this.#tokenizer.eosTokenIds.includes(id)) return '';
    return this.#untilStop.push(this.#decoder.push(id));
  }

  /** The rest, given all tokens. */
  finish(tokens: ArrayLike<number>): string {
    let text = '';
    for (let position = this.#next; position < tokens.length; position++)
      text += this.push(position, tokens[position]!);
    return text + this.#untilStop.push(this.#decoder.flush()) + this.#untilStop.flush();
  }
}
