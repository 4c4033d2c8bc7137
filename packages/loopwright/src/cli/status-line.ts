/** How far something is, once a second: a line that is written over, on terminals; an event, for programs. */
import type { Console } from './console.js';

const everyMs = 1000;

export class StatusLine implements Disposable {
  readonly #console: Console;
  readonly #now: () => number;
  #toldAtMs: number;
  #shown = false;

  constructor(console: Console, now: () => number = Date.now) {
    this.#console = console;
    this.#now = now;
    this.#toldAtMs = now();
  }

  /** Does nothing within a second of the last. */
  show({ event, text }: { readonly event: object; readonly text: string }): void {
    const { stderr, json } = this.#console;
    const now = this.#now();
    if (now - this.#toldAtMs < everyMs) return;
    this.#toldAtMs = now;
    if (json) this.#console.event(event);
    else if (stderr.isTTY === true) {
      stderr.write(`\r\x1b[K${text}`);
      this.#shown = true;
    }
  }

  /** Before anything else is written. */
  clear(): void {
    if (this.#shown) this.#console.stderr.write('\r\x1b[K');
    this.#shown = false;
  }

  [Symbol.dispose](): void {
    this.clear();
  }
}
