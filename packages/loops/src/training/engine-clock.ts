/** For how much of a step the engine has something to do, as its caller sees it. */
import type { Sampler, Scorer } from './clients.js';

/** Counts the time in which at least one call is under way, waiting in the engine's queue and on the way there and back included. */
export class EngineClock {
  readonly #now: () => number;
  #open = 0;
  #busyMs = 0;
  /** Since when calls have been under way without a gap. */
  #busyFrom = 0;
  #windowFrom: number;

  constructor(now: () => number) {
    this.#now = now;
    this.#windowFrom = now();
  }

  /** A call of the engine. */
  async watch<T>(call: () => PromiseLike<T>): Promise<T> {
    if (this.#open === 0) this.#busyFrom = this.#now();
    this.#open += 1;
    try {
      return await call();
    } finally {
      this.#open -= 1;
      if (this.#open === 0) this.#busyMs += this.#now() - this.#busyFrom;
    }
  }

  /** The sampler with its calls watched. */
  sampler(sampler: Sampler): Sampler {
    return { sample: (prompt, options) => this.watch(() => sampler.sample(prompt, options)) };
  }

  /** The scorer with its calls watched. */
  scorer(scorer: Scorer): Scorer {
    return { computeLogprobs: (prompt, options) => this.watch(() => scorer.computeLogprobs(prompt, options)) };
  }

  /** Begins a window. */
  restart(): void {
    const now = this.#now();
    this.#windowFrom = now;
    this.#busyFrom = now;
    this.#busyMs = 0;
  }

  /** Of the window so far. */
  read(): { readonly busyMs: number; readonly wallMs: number } {
    const now = this.#now();
    const busyMs = this.#busyMs + (this.#open > 0 ? now - this.#busyFrom : 0);
    return { busyMs, wallMs: now - this.#windowFrom };
  }
}
