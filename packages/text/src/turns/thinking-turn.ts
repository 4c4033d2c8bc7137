/** Reasoning at the beginning of a turn, between `<think>` and `</think>`, kept apart from what follows. */
import { overlap } from '../until-stop.js';
import type { TurnEnd, TurnEvent, TurnParser } from './turn-event.js';

const [opening, closing] = ['<think>', '</think>'];

export interface ThinkingOptions {
  /** The prompt ends with `<think>` already. */
  readonly isOpen: boolean;
  /** The marks are tokens of their own, so that their spelling in text is text; default false. */
  readonly isToken?: boolean;
  /** Control tokens that are text where they mean nothing, as within reasoning. */
  readonly plainMarks?: readonly string[];
}

export class ThinkingTurn implements TurnParser {
  readonly #rest: TurnParser;
  readonly #isToken: boolean;
  readonly #plainMarks: readonly string[];
  #state: 'begin' | 'thinking' | 'behind' | 'rest';
  #held = '';
  #hasReasoned = false;

  constructor(rest: TurnParser, { isOpen, isToken = false, plainMarks = [] }: ThinkingOptions) {
    this.#rest = rest;
    this.#isToken = isToken;
    this.#plainMarks = plainMarks;
    this.#state = isOpen ? 'thinking' : 'begin';
  }

  text(piece: string): TurnEvent[] {
    if (this.#state === 'rest') return this.#rest.text(piece);
    this.#held += piece;
    return this.#isToken ? this.#advanceToText() : this.#advance();
  }

  /** With marks that come as tokens, text opens and closes nothing. */
  #advanceToText(): TurnEvent[] {
    if (this.#state === 'begin') return this.#held.trim() === '' ? [] : this.#leave(this.#held);
    if (this.#state === 'behind') {
      const text = this.#held.trimStart();
      return text === '' ? [] : this.#leave(text);
    }
    if (!this.#hasReasoned) this.#held = this.#held.trimStart();
    const ready = this.#held.trimEnd();
    if (ready !== '') this.#hasReasoned = true;
    this.#held = this.#held.slice(ready.length);
    return reasoningEvent(ready);
  }

  #mark(token: string): TurnEvent[] {
    if (token === opening && this.#state === 'begin' && this.#held.trim() === '') {
      this.#state = 'thinking';
      this.#held = '';
      return [];
    }
    if (token === closing && this.#state === 'thinking') {
      this.#state = 'behind';
      this.#held = '';
      return [];
    }
    return this.#state === 'rest' || this.#state === 'thinking' ? this.text(token) : this.#leave(this.#held + token);
  }

  control(token: string): TurnEvent[] {
    // Some vocabularies have the marks as control tokens.
    if (token === opening || token === closing) return this.#isToken ? this.#mark(token) : this.text(token);
    if (this.#state === 'thinking' && this.#plainMarks.includes(token)) return this.text(token);
    const held = this.#state === 'rest' ? [] : this.#release();
    return [...held, ...this.#rest.control(token)];
  }

  end(how: TurnEnd): TurnEvent[] {
    return [...this.#release(), ...this.#rest.end(how)];
  }

  #advance(): TurnEvent[] {
    if (this.#state === 'begin') {
      const begun = this.#held.trimStart();
      if (opening.startsWith(begun)) return begun === opening ? this.#think(begun) : [];
      if (!begun.startsWith(opening)) return this.#leave(this.#held);
      return this.#think(begun);
    }
    if (this.#state === 'behind') {
      const text = this.#held.trimStart();
      return text === '' ? [] : this.#leave(text);
    }
    // White space at both ends is the template's.
    if (!this.#hasReasoned) this.#held = this.#held.trimStart();
    const at = this.#held.indexOf(closing);
    if (at >= 0) {
      const reasoning = this.#held.slice(0, at).trimEnd();
      this.#state = 'behind';
      this.#held = this.#held.slice(at + closing.length);
      return [...reasoningEvent(reasoning), ...this.#advance()];
    }
    const ready = this.#held.slice(0, this.#held.length - overlap(this.#held, closing)).trimEnd();
    if (ready !== '') this.#hasReasoned = true;
    this.#held = this.#held.slice(ready.length);
    return reasoningEvent(ready);
  }

  #think(begun: string): TurnEvent[] {
    this.#state = 'thinking';
    this.#held = begun.slice(opening.length);
    return this.#advance();
  }

  #leave(text: string): TurnEvent[] {
    this.#state = 'rest';
    this.#held = '';
    return this.#rest.text(text);
  }

  /** What is held back when no more of it will come. */
  #release(): TurnEvent[] {
    const held = this.#held;
    this.#held = '';
    if (this.#state === 'thinking') return reasoningEvent(held.trimEnd());
    return this.#state === 'begin' ? this.#leave(held) : [];
  }
}

const reasoningEvent = (text: string): TurnEvent[] => (text === '' ? [] : [{ type: 'reasoning', text }]);
