/** Which tokens of a streamed answer its chunks have told of, in the forms that were asked for. */
import type { ChunkTokens, GenerationRequest } from '@loopwright/wires/openai';
import type { AnswerTurn } from '../chat/answer-turn.js';

export type TokenForms = Pick<GenerationRequest, 'logprobs' | 'topLogprobs' | 'tokenIds'>;

export class ToldTokens {
  readonly #turn: AnswerTurn;
  readonly #forms: TokenForms;
  #logprobs = 0;
  #ids = 0;

  constructor(turn: AnswerTurn, forms: TokenForms) {
    this.#turn = turn;
    this.#forms = forms;
  }

  /** Those that are new. Log-probs with others beside them wait for {@link rest}: they are known once the answer is whole. */
  next(): ChunkTokens {
    return this.#new(this.#forms.logprobs && this.#forms.topLogprobs === 0);
  }

  /** All that no chunk has told of, once the turn has finished. */
  rest(): ChunkTokens {
    return this.#new(this.#forms.logprobs);
  }

  #new(logprobs: boolean): ChunkTokens {
    const { tokens } = this.#turn;
    const isNew = (told: number) => tokens.length > told;
    const fresh = {
      ...(logprobs && isNew(this.#logprobs) ? { logprobs: this.#turn.shownTokens(this.#logprobs) } : {}),
      ...(this.#forms.tokenIds && isNew(this.#ids) ? { tokens: tokens.slice(this.#ids) } : {}),
    };
    if (logprobs) this.#logprobs = tokens.length;
    this.#ids = tokens.length;
    return fresh;
  }
}
