/** Calls as `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, any number of them in the text: Hermes, Qwen. */
import { overlap } from '../until-stop.js';
import { jsonExtent } from './json-extent.js';
import { readCall } from './read-call.js';
import { type TurnEnd, type TurnEvent, type TurnParser, textEvent } from './turn-event.js';

const [opening, closing] = ['<tool_call>', '</tool_call>'];

export class HermesTurn implements TurnParser {
  readonly uses = [opening, closing];
  readonly #tools: readonly string[];
  readonly #isToken: boolean;
  #inCall = false;
  #hadCall = false;
  #held = '';

  /** @param options isToken: the marks are tokens of their own, so that their spelling in text is text */
  constructor(tools: readonly string[], { isToken = false }: { readonly isToken?: boolean } = {}) {
    this.#tools = tools;
    this.#isToken = isToken;
  }

  text(piece: string): TurnEvent[] {
    this.#held += piece;
    if (this.#isToken) return this.#inCall ? [] : this.#shownText(this.#held.trimEnd().length);
    const events: TurnEvent[] = [];
    for (let more = true; more; ) more = this.#inCall ? this.#readCall(events) : this.#readText(events);
    return events;
  }

  control(token: string): TurnEvent[] {
    if (token !== opening && token !== closing) return [];
    if (!this.#isToken) return this.text(token);
    if (!this.#inCall) return token === opening ? this.#open() : this.text(token);
    const extent = jsonExtent(this.#held);
    if (token === opening || (extent.type === 'partial' && this.#held.trim() !== '')) {
      this.#held += token; // within a string of the call, or a call that is none
      return [];
    }
    const json = this.#held;
    this.#held = '';
    this.#inCall = false;
    this.#hadCall = true;
    return [this.#call(json, opening + json + closing)];
  }

  /** White space before a call is the template's. */
  #open(): TurnEvent[] {
    const events = textEvent(this.#held.trimEnd());
    this.#held = '';
    this.#inCall = true;
    return events;
  }

  /** Lets so many characters of what is held go. */
  #shownText(length: number): TurnEvent[] {
    const shown = this.#held.slice(0, length);
    this.#held = this.#held.slice(length);
    return textEvent(shown);
  }

  end({ cut }: TurnEnd): TurnEvent[] {
    const held = this.#held;
    this.#held = '';
    if (!this.#inCall) return textEvent(this.#hadCall && held.trim() === '' ? '' : held);
    this.#inCall = false;
    const raw = opening + held;
    // Some leave the closing mark out at the end of the turn; what was cut is never taken for whole.
    return [cut ? { type: 'broken-call', raw, reason: 'cut' } : this.#call(held, raw)];
  }

  /** True when there is more to read. White space before a call is the template's, so it is held back. */
  #readText(events: TurnEvent[]): boolean {
    const at = this.#held.indexOf(opening);
    if (at >= 0) {
      events.push(...textEvent(this.#held.slice(0, at).trimEnd()));
      this.#held = this.#held.slice(at + opening.length);
      this.#inCall = true;
      return true;
    }
    const ready = this.#held.slice(0, this.#held.length - overlap(this.#held, opening)).trimEnd();
    events.push(...textEvent(ready));
    this.#held = this.#held.slice(ready.length);
    return false;
  }

  /** The mark that ends a call is looked for behind its object: an argument may hold it as text. */
  #readCall(events: TurnEvent[]): boolean {
    const extent = jsonExtent(this.#held);
    if (extent.type === 'partial') return false;
    const at = this.#held.indexOf(closing, extent.type === 'whole' ? extent.end : 0);
    if (at < 0) return false;
    const json = this.#held.slice(0, at);
    events.push(this.#call(json, opening + json + closing));
    this.#held = this.#held.slice(at + closing.length);
    this.#inCall = false;
    this.#hadCall = true;
    return true;
  }

  #call(json: string, raw: string): TurnEvent {
    return readCall(json, raw, { argumentsKey: 'arguments', tools: this.#tools });
  }
}
