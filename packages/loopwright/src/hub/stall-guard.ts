/** Gives a connection up that says nothing for too long, or that the caller cancels. */
import { LoopwrightError } from '@loopwright/protocol';

export interface StallGuardOptions {
  readonly stallMs: number;
  /** The caller's. */
  readonly signal?: AbortSignal | undefined;
}

export class StallGuard implements Disposable {
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #caller: AbortSignal | undefined;
  readonly #onCancel = (): void => this.#controller.abort();

  constructor({ stallMs, signal }: StallGuardOptions) {
    this.#caller = signal;
    this.#timer = setTimeout(() => {
      this.#controller.abort(new StallError(stallMs));
    }, stallMs);
    if (signal?.aborted === true) this.#onCancel();
    else signal?.addEventListener('abort', this.#onCancel, { once: true });
  }

  /** For the request. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The error to throw when it was the caller who ended it. */
  get cancelled(): LoopwrightError | undefined {
    return this.#caller?.aborted === true ? cancellation(this.#caller) : undefined;
  }

  /** The connection said something. */
  touch(): void {
    this.#timer.refresh();
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
    this.#caller?.removeEventListener('abort', this.#onCancel);
  }
}

/** The connection was silent for too long. */
export class StallError extends Error {
  override readonly name = 'StallError';

  constructor(stallMs: number) {
    super(`no byte for ${stallMs / 1000} s`);
  }
}

/** What a cancelled caller is told. */
export function cancellation(signal: AbortSignal): LoopwrightError {
  const { reason } = signal as { readonly reason: unknown }; // true: `any` is narrowed to unknown
  if (LoopwrightError.isInstance(reason)) return reason;
  return new LoopwrightError({ code: 'cancelled', message: 'the download was cancelled by the caller', cause: reason });
}
