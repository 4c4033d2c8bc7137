/** What goes wrong without stopping a run: told at once, each thing once, and kept. */
export class RunWarnings {
  readonly #onWarning: (message: string) => void;
  readonly #messages: string[] = [];

  constructor(onWarning: (message: string) => void) {
    this.#onWarning = onWarning;
  }

  get messages(): readonly string[] {
    return this.#messages;
  }

  /** Bound, so it can be handed on. */
  readonly add = (message: string): void => {
    if (this.#messages.includes(message)) return;
    this.#messages.push(message);
    this.#onWarning(message);
  };
}
