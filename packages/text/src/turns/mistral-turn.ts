/** Calls as a list behind the control token `[TOOL_CALLS]`: Mistral. */
import { jsonExtent } from './json-extent.js';
import { readCall } from './read-call.js';
import { type TurnEnd, type TurnEvent, type TurnParser, textEvent } from './turn-event.js';

const mark = '[TOOL_CALLS]';

export class MistralTurn implements TurnParser {
  readonly #tools: readonly string[];
  #inCalls = false;
  #held = '';

  constructor(tools: readonly string[]) {
    this.#tools = tools;
  }

  text(piece: string): TurnEvent[] {
    if (!this.#inCalls) return textEvent(piece);
    this.#held += piece;
    return [];
  }

  control(token: string): TurnEvent[] {
    if (token !== mark) return [];
    if (this.#inCalls) this.#held += mark;
    this.#inCalls = true;
    return [];
  }

  end({ cut }: TurnEnd): TurnEvent[] {
    if (!this.#inCalls) return [];
    const raw = mark + this.#held;
    const extent = jsonExtent(this.#held);
    const isWhole = extent.type === 'whole' && this.#held.slice(extent.end).trim() === '';
    if (!isWhole) return [{ type: 'broken-call', raw, reason: cut ? 'cut' : 'not-json' }];
    const items = listItems(this.#held.slice(0, extent.end));
    if (items === undefined || items.length === 0) return [{ type: 'broken-call', raw, reason: 'not-json' }];
    return items.map((item) => readCall(item, item, { argumentsKey: 'arguments', tools: this.#tools }));
  }
}

/** The texts of a list's objects; undefined where it is no list of objects. */
function listItems(text: string): string[] | undefined {
  let rest = text.trim();
  if (!rest.startsWith('[')) return undefined;
  rest = rest.slice(1).trimStart();
  const items: string[] = [];
  while (!rest.startsWith(']')) {
    const extent = jsonExtent(rest);
    if (extent.type !== 'whole') return undefined;
    items.push(rest.slice(0, extent.end));
    rest = rest.slice(extent.end).trimStart();
    if (rest.startsWith(',')) rest = rest.slice(1).trimStart();
    else if (!rest.startsWith(']')) return undefined;
  }
  return rest === ']' ? items : undefined;
}
