/** How far a replay is: a line that is written over, on terminals; an event a second, for programs. */
import type { Console } from '../console.js';

export interface ReplayProgress {
  readonly session: string;
  readonly done: number;
  readonly total: number;
}

const everyMs = 1000;

export class Progress implements Disposable {
  readonly #console: Console;
  readonly #now: () => number;
  #toldAtMs: number;
  #shown = false;

  constructor(console: Console, now: () => number = Date.now) {
    this.#console = console;
    this.#now = now;
    this.#toldAtMs = now();
  }

  show({ session, done, total }: ReplayProgress): void {
    const { stderr, json } = this.#console;
    const now = this.#now();
    if (now - this.#toldAtMs < everyMs) return;
    this.#toldAtMs = now;
    if (json) this.#console.event({ type: 'progress', session, done, total });
    else if (stderr.isTTY === true) {
      stderr.write(`\r\x1b[K${done} of ${total} operations`);
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
