/** How far slow work is, for logs: a line every ten seconds on a standard error that is no terminal. */
import type { Console } from './console.js';

const everyMs = 10_000;

export class SlowNotes {
  readonly #console: Console;
  readonly #now: () => number;
  #toldAtMs: number;

  constructor(console: Console, now: () => number = Date.now) {
    this.#console = console;
    this.#now = now;
    this.#toldAtMs = now();
  }

  /** Does nothing within ten seconds of the last, for programs and on terminals: they have a status line. */
  show(text: string): void {
    const { stderr, json } = this.#console;
    const now = this.#now();
    if (json || stderr.isTTY === true || now - this.#toldAtMs < everyMs) return;
    this.#toldAtMs = now;
    this.#console.note(text);
  }
}
