/**
 * Turns of gpt-oss: messages with a header of channel and recipient, `<|channel|>analysis<|message|>…<|end|>`. Reasoning is in the
 * channel analysis, the answer in final, calls in commentary with the recipient `functions.NAME`.
 */
import { readArguments } from './read-call.js';
import { type TurnEnd, type TurnEvent, type TurnParser, textEvent } from './turn-event.js';

type Kind =
  | { readonly type: 'text' }
  | { readonly type: 'reasoning' }
  | { readonly type: 'call'; readonly name: string }
  | { readonly type: 'bad' };

export class HarmonyTurn implements TurnParser {
  readonly #tools: readonly string[];
  /** The header as it was written; undefined within a body. */
  #header: string | undefined = '';
  #kind: Kind = { type: 'text' };
  #body = '';

  constructor(tools: readonly string[]) {
    this.#tools = tools;
  }

  text(piece: string): TurnEvent[] {
    if (this.#header !== undefined) {
      this.#header += piece;
      return [];
    }
    switch (this.#kind.type) {
      case 'text':
        return textEvent(piece);
      case 'reasoning':
        return piece === '' ? [] : [{ type: 'reasoning', text: piece }];
      case 'call':
      case 'bad':
        this.#body += piece;
        return [];
      default:
        return this.#kind satisfies never;
    }
  }

  control(token: string): TurnEvent[] {
    switch (token) {
      case '<|message|>':
        if (this.#header === undefined) return this.#bad(token);
        this.#kind = kindOf(this.#header);
        this.#body = this.#kind.type === 'bad' || this.#kind.type === 'call' ? `${this.#header}<|message|>` : '';
        this.#header = undefined;
        return [];
      case '<|channel|>':
      case '<|constrain|>':
        if (this.#header === undefined) return this.#bad(token);
        this.#header += token;
        return [];
      case '<|end|>':
      case '<|call|>':
      case '<|return|>':
        return this.#close(false);
      case '<|start|>': {
        const events = this.#close(false);
        this.#header = token;
        return events;
      }
      default:
        return [];
    }
  }

  end({ cut }: TurnEnd): TurnEvent[] {
    return this.#close(cut);
  }

  /** A mark where none can be: the message is kept as it was written. */
  #bad(token: string): TurnEvent[] {
    this.#body += token;
    if (this.#kind.type !== 'bad') this.#kind = { type: 'bad' };
    return [];
  }

  #close(cut: boolean): TurnEvent[] {
    const [header, kind, body] = [this.#header, this.#kind, this.#body];
    this.#header = '';
    this.#kind = { type: 'text' };
    this.#body = '';
    // A header without a body: nothing where it is empty or only names the speaker, as between messages.
    if (header !== undefined) {
      const isEmpty = /^(<\|start\|>)?\s*(assistant)?\s*$/.test(header);
      return isEmpty ? [] : [{ type: 'broken-call', raw: header, reason: cut ? 'cut' : 'bad-header' }];
    }
    switch (kind.type) {
      case 'text':
      case 'reasoning':
        return [];
      case 'bad':
        return [{ type: 'broken-call', raw: body, reason: 'bad-header' }];
      case 'call': {
        if (cut) return [{ type: 'broken-call', raw: body, reason: 'cut' }];
        const json = body.slice(body.indexOf('<|message|>') + '<|message|>'.length);
        return [readArguments(kind.name, json.trim() === '' ? '{}' : json, body, this.#tools)];
      }
      default:
        return kind satisfies never;
    }
  }
}

function kindOf(header: string): Kind {
  const name = /\bto=functions\.([^\s<]+)/.exec(header)?.[1];
  if (name !== undefined) return { type: 'call', name };
  if (/\bto=/.test(header)) return { type: 'bad' };
  const channel = /<\|channel\|>\s*(\w+)/.exec(header)?.[1];
  // A message before a call is said to the user as well, though it has the channel of calls.
  if (channel === 'final' || channel === 'commentary') return { type: 'text' };
  return channel === 'analysis' ? { type: 'reasoning' } : { type: 'bad' };
}
