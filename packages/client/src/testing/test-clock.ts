/** A clock on which nobody waits: sleeping moves it. */
import { type Clock, cancelledBy } from '../clock.js';

export class TestClock implements Clock {
  /** What was slept, in order. */
  readonly sleeps: number[] = [];
  #nowMs = 0;

  readonly now = (): number => this.#nowMs;

  readonly sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    if (signal?.aborted === true) throw cancelledBy(signal);
    this.sleeps.push(ms);
    this.#nowMs += ms;
    await new Promise((resolve) => setImmediate(resolve));
  };

  pass(ms: number): void {
    this.#nowMs += ms;
  }
}
