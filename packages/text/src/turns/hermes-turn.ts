/** Calls as `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, any number of them in the text: Hermes, Qwen. */
import { overlap } from '../until-stop.js';
import { jsonExtent } from './json-extent.js';
import { readCall } from './read-call.js';
import { type TurnEnd, type TurnEvent, type TurnParser, textEvent } from './turn-event.js';

const [opening, closing] = ['<tool_call>', '</tool_call>'];

export class HermesTurn implements TurnParser {
  readonly #tools: readonly string[];
  #inCall = false;
  #hadCall = false;
  #held = '';

  constructor(tools: readonly string[]) {
    this.#tools = tools;
  }

  text(piece: string): TurnEvent[] {
    this.#held += piece;
    const events: TurnEvent[] = [];
    for (let more = true; more; ) more = this.#inCall ? this.#readCall(events) : this.#readText(events);
    return events;
  }

  control(token: string): TurnEvent[] {
    return token === opening || token === closing ? this.text(token) : [];
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
