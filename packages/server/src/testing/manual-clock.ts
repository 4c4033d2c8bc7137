/** A clock that stands still until it is told to go on. */
import type { Clock } from '../clock.js';

export class ManualClock implements Clock {
  #now = 1_800_000_000_000;
  readonly #timers = new Set<{ readonly atMs: number; readonly action: () => void }>();

  now(): number {
    return this.#now;
  }

  elapsedMs(): number {
    return this.#now;
  }

  after(delayMs: number, action: () => void): () => void {
    const timer = { atMs: this.#now + delayMs, action };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Moves on and runs what has become due, in order. */
  advance(ms: number): void {
    const end = this.#now + ms;
    for (;;) {
      const due = [...this.#timers].filter(({ atMs }) => atMs <= end).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#now = Math.max(this.#now, due.atMs);
      due.action();
    }
    this.#now = end;
  }
}
