/** A clock that stands still until it is told to go on. */
import type { Clock } from '../clock.js';

export class ManualClock implements Clock {
  #now = 1_800_000_000_000;
  #moved = 0;
  #elapsed = 0;
  readonly #timers = new Set<{ readonly atMs: number; readonly action: () => void }>();

  now(): number {
    return this.#now;
  }

  elapsedMs(): number {
    return this.#elapsed;
  }

  resync(): number {
    const moved = this.#moved;
    this.#moved = 0;
    this.#now += moved;
    return moved;
  }

  /** Someone sets the time of day, or the machine sleeps. */
  moveTimeOfDay(ms: number): void {
    this.#moved += ms;
  }

  after(delayMs: number, action: () => void): () => void {
    const timer = { atMs: this.#elapsed + delayMs, action };
    this.#timers.add(timer);
    return () => {
      this.#timers.delete(timer);
    };
  }

  /** Moves on and runs what has become due, in order. */
  advance(ms: number): void {
    const end = this.#elapsed + ms;
    for (;;) {
      const due = [...this.#timers].filter(({ atMs }) => atMs <= end).sort((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#goOn(due.atMs);
      due.action();
    }
    this.#goOn(end);
  }

  #goOn(elapsed: number): void {
    const ms = Math.max(0, elapsed - this.#elapsed);
    this.#elapsed += ms;
    this.#now += ms;
  }
}
