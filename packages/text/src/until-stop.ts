/** Text up to a stop string, for text that arrives in pieces. */

/** Lets text through up to the first of the stop strings; holds back what may be the beginning of one. */
export class UntilStop {
  readonly #stops: readonly string[];
  #held = '';
  #stopped = false;

  /** @param stops none of them empty */
  constructor(stops: readonly string[]) {
    this.#stops = stops;
  }

  /** Whether a stop string was met. */
  get stopped(): boolean {
    return this.#stopped;
  }

  /** What can be shown now. Empty once a stop string was met. */
  push(piece: string): string {
    if (this.#stopped) return '';
    const text = this.#held + piece;
    const ends = this.#stops.map((stop) => text.indexOf(stop)).filter((at) => at >= 0);
    if (ends.length > 0) {
      this.#stopped = true;
      this.#held = '';
      return text.slice(0, Math.min(...ends));
    }
    const kept = Math.max(0, ...this.#stops.map((stop) => overlap(text, stop)));
    this.#held = text.slice(text.length - kept);
    return text.slice(0, text.length - kept);
  }

  /** What was held back, at the end of the text. */
  flush(): string {
    const held = this.#held;
    this.#held = '';
    return held;
  }
}

/** Characters at the end of `text` that are the beginning of `stop`. */
export function overlap(text: string, stop: string): number {
  for (let length = Math.min(text.length, stop.length - 1); length > 0; length--)
    if (stop.startsWith(text.slice(text.length - length))) return length;
  return 0;
}
