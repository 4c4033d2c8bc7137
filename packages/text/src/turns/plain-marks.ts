/** Marks that a format has no use for are text, as long as they aren't special: a call where no tools were offered, a quoted mark. */
import type { TurnEnd, TurnEvent, TurnParser } from './turn-event.js';

export class PlainMarks implements TurnParser {
  readonly #inner: TurnParser;
  readonly #marks: readonly string[];

  constructor(inner: TurnParser, marks: readonly string[]) {
    this.#inner = inner;
    this.#marks = marks;
  }

  text(piece: string): TurnEvent[] {
    return this.#inner.text(piece);
  }

  control(token: string): TurnEvent[] {
    const isUsed = this.#inner.uses?.includes(token) === true;
    return !isUsed && this.#marks.includes(token) ? this.#inner.text(token) : this.#inner.control(token);
  }

  end(how: TurnEnd): TurnEvent[] {
    return this.#inner.end(how);
  }
}
