/** One sampled answer as its tokens come: what is said in it, and the tokens themselves. */
import type { SampledSequence, TokenLogprob } from '@loopwright/protocol';
import { shortCallId, type Tokenizer, type TurnEvent, type TurnParser, UntilStop } from '@loopwright/text';
import type {
  AnswerToken,
  BrokenCall,
  ChatChoice,
  FinishReason,
  LikelyToken,
  ToolCall,
} from '@loopwright/wires/openai';

/** What is said, with calls that have their ids. */
export type AnswerEvent =
  | Exclude<TurnEvent, { type: 'tool-call' | 'broken-call' }>
  | { readonly type: 'tool-call'; readonly index: number; readonly call: ToolCall }
  | { readonly type: 'broken-call'; readonly call: BrokenCall };

export interface AnswerTurnOptions {
  readonly tokenizer: Tokenizer;
  readonly parser: TurnParser;
  /** Stop texts of the caller, which are no part of the answer. */
  readonly stop: readonly string[];
  /** What ids of calls are made of; unique for each answer. */
  readonly callSeed: string;
}

/** A token that was drawn. */
export interface Drawn {
  readonly id: number;
  readonly logprob: number;
}

export class AnswerTurn {
  readonly #options: AnswerTurnOptions;
  readonly #decoder: ReturnType<Tokenizer['streamDecoder']>;
  readonly #untilStop: UntilStop;
  /** As they were drawn, the one that ended the turn included. */
  readonly tokens: AnswerToken[] = [];
  readonly #spellings = new Map<number, Pick<LikelyToken, 'text' | 'bytes'>>();
  #calls = 0;
  #stopped = false;

  constructor(options: AnswerTurnOptions) {
    this.#options = options;
    this.#decoder = options.tokenizer.streamDecoder();
    this.#untilStop = new UntilStop(options.stop);
  }

  /** Of the tokens from a position on, those of which log-probs are told: not what ends the turn. */
  shownTokens(from = 0): readonly AnswerToken[] {
    return this.tokens.slice(from).filter(({ id }) => !this.#isEnd(id));
  }

  /** What the token at a position adds; nothing for one that came before, as when an operation is begun again. */
  push(position: number, { id, logprob }: Drawn): AnswerEvent[] {
    if (position !== this.tokens.length) return [];
    const { tokenizer } = this.#options;
    this.tokens.push({ id, logprob, ...this.#spelled(id) });
    if (this.#isEnd(id) || this.#stopped) return [];
    const control = tokenizer.controlToken(id);
    return this.#numbered(control === undefined ? this.#text(this.#decoder.push(id)) : this.#control(control));
  }

  /** The rest, given all tokens. Which others were likely in their places is known now, not before. */
  finish({ tokens, logprobs, stopReason, topkLogprobs }: SampledSequence): {
    readonly events: readonly AnswerEvent[];
    readonly finishReason: FinishReason;
  } {
    const events: AnswerEvent[] = [];
    for (let position = this.tokens.length; position < tokens.length; position++)
      events.push(...this.push(position, { id: tokens[position]!, logprob: logprobs[position]! }));
    topkLogprobs?.forEach((row, position) => {
      this.tokens[position] = { ...this.tokens[position]!, top: this.#likely(row, this.tokens[position]!) };
    });
    if (!this.#stopped) events.push(...this.#numbered(this.#text(this.#decoder.flush())));
    const held = this.#stopped ? '' : this.#untilStop.flush();
    const { parser } = this.#options;
    const cut = stopReason === 'length' || this.#stopped;
    events.push(...this.#numbered([...(held === '' ? [] : parser.text(held)), ...parser.end({ cut })]));
    return { events, finishReason: stopReason === 'length' ? 'length' : this.#calls > 0 ? 'tool_calls' : 'stop' };
  }

  /** One token has one value: where the drawn one is among the likeliest, it has that with which it was drawn. */
  #likely(row: readonly TokenLogprob[], drawn: Drawn): LikelyToken[] {
    const top = row.map(({ tokenId: id, logprob }) => ({
      id,
      logprob: id === drawn.id ? drawn.logprob : logprob,
      ...this.#spelled(id),
    }));
    return top.sort((a, b) => b.logprob - a.logprob);
  }

  /** The same few tokens are likely again and again. */
  #spelled(id: number): Pick<LikelyToken, 'text' | 'bytes'> {
    const { tokenizer } = this.#options;
    let spelled = this.#spellings.get(id);
    if (spelled === undefined) {
      spelled = { text: tokenizer.decode([id], { skipSpecialTokens: false }), bytes: tokenizer.tokenBytes(id) };
      this.#spellings.set(id, spelled);
    }
    return spelled;
  }

  #isEnd(id: number): boolean {
    return this.#options.tokenizer.eosTokenIds.includes(id);
  }

  #text(text: string): TurnEvent[] {
    if (text === '') return [];
    const shown = this.#untilStop.push(text);
    this.#stopped = this.#untilStop.stopped;
    return shown === '' ? [] : this.#options.parser.text(shown);
  }

  #control(token: string): TurnEvent[] {
    const { stop, parser } = this.#options;
    const before = this.#text(this.#decoder.flush());
    if (stop.includes(token)) {
      this.#stopped = true;
      return before;
    }
    const held = this.#untilStop.flush();
    return [...before, ...(held === '' ? [] : parser.text(held)), ...parser.control(token)];
  }

  #numbered(events: readonly TurnEvent[]): AnswerEvent[] {
    return events.map((event): AnswerEvent => {
      if (event.type === 'broken-call') return { type: 'broken-call', call: { reason: event.reason, raw: event.raw } };
      if (event.type !== 'tool-call') return event;
      const index = this.#calls++;
      const call = {
        id: shortCallId(`${this.#options.callSeed}/${index}`),
        name: event.name,
        arguments: event.arguments,
      };
      return { type: 'tool-call', index, call };
    });
  }
}

/** A whole answer out of its events. */
export function choiceOf(
  events: readonly AnswerEvent[],
  finishReason: FinishReason,
): Pick<ChatChoice, 'content' | 'reasoning' | 'toolCalls' | 'brokenCalls' | 'finishReason'> {
  let [content, reasoning] = ['', ''];
  const toolCalls: ToolCall[] = [];
  const brokenCalls: BrokenCall[] = [];
  for (const event of events) {
    switch (event.type) {
      case 'text':
        content += event.text;
        break;
      case 'reasoning':
        reasoning += event.text;
        break;
      case 'tool-call':
        toolCalls.push(event.call);
        break;
      case 'broken-call':
        content += event.call.raw;
        brokenCalls.push(event.call);
        break;
      default:
        event satisfies never;
    }
  }
  return { content, reasoning, toolCalls, brokenCalls, finishReason };
}
