/** Calls as the whole turn: `{"name": …, "parameters": {…}}`, several with `;` between, `<|python_tag|>` before them or not: Llama 3. */
import { jsonExtent } from './json-extent.js';
import { readCall } from './read-call.js';
import { type TurnEnd, type TurnEvent, type TurnParser, textEvent } from './turn-event.js';

const mark = '<|python_tag|>';

export class LlamaTurn implements TurnParser {
  readonly #tools: readonly string[];
  #state: 'begin' | 'text' | 'calls' = 'begin';
  #isMarked = false;
  #held = '';

  constructor(tools: readonly string[]) {
    this.#tools = tools;
  }

  text(piece: string): TurnEvent[] {
    if (this.#state === 'text') return textEvent(piece);
    this.#held += piece;
    if (this.#state === 'calls') return [];
    const begun = this.#held.trimStart();
    // An object whose first key is another one is an answer in JSON.
    if (begun === '' || /^\{\s*("[a-z]*)?$/.test(begun)) return [];
    if (/^\{\s*"(name|parameters)"/.test(begun)) {
      this.#state = 'calls';
      return [];
    }
    return this.#asText();
  }

  control(token: string): TurnEvent[] {
    if (token !== mark || this.#isMarked || this.#state === 'calls') return [];
    const before = this.#asText();
    this.#state = 'calls';
    this.#isMarked = true;
    return before;
  }

  end({ cut }: TurnEnd): TurnEvent[] {
    if (this.#state !== 'calls') return this.#asText();
    const { calls, rest } = this.#readAll(this.#held);
    const raw = (this.#isMarked ? mark : '') + this.#held;
    if (rest.trim() === '' && calls.length > 0) return calls;
    // One part of what was said is no call: which is meant isn't to be guessed.
    return [{ type: 'broken-call', raw, reason: cut ? 'cut' : 'not-json' }];
  }

  #readAll(text: string): { calls: TurnEvent[]; rest: string } {
    const calls: TurnEvent[] = [];
    let rest = text;
    for (;;) {
      const extent = jsonExtent(rest);
      if (extent.type !== 'whole') return { calls, rest };
      const json = rest.slice(0, extent.end);
      calls.push(readCall(json, json, { argumentsKey: 'parameters', tools: this.#tools }));
      rest = rest.slice(extent.end);
      const separator = /^\s*;\s*(?=\S)/.exec(rest);
      if (separator === null) return { calls, rest };
      rest = rest.slice(separator[0].length);
    }
  }

  #asText(): TurnEvent[] {
    const held = this.#held;
    this.#held = '';
    this.#state = 'text';
    return textEvent(held);
  }
}
