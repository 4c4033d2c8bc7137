/** What calls of training and sampling clients return: a promise that knows where its operation stands. */
import { asLoopwrightError, type LoopwrightError } from '@loopwright/protocol';
import { type FailureLog, unawaitedError } from './failure-log.js';
import type { OperationState } from './operation-task.js';

export type { OperationState } from './operation-task.js';

/** What a future needs of the tasks that stand behind it. */
export interface FuturePart {
  readonly state: OperationState;
  readonly waitingFor: string | undefined;
  readonly operationId: string | undefined;
  readonly name: string;
  readonly cancel: () => void;
}

export interface FutureSource<T> {
  readonly result: Promise<T>;
  /** One, or the parts of a batch too large for one request, in order. */
  readonly parts: readonly FuturePart[];
  readonly log: FailureLog;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The result of an operation that goes on by itself: await it when you need it, or never.
 *
 * A failure that nobody awaits does not end the process. It comes out at the next await of a future of the same client, or
 * when the client is disposed, as an error that names the operation.
 */
export class OperationFuture<T> implements PromiseLike<T> {
  readonly #result: Promise<T>;
  readonly #parts: readonly FuturePart[];
  readonly #log: FailureLog;
  #end: OperationState | undefined;
  #isAwaited = false;

  /** Made by clients. */
  constructor({ result, parts, log, signal }: FutureSource<T>) {
    this.#parts = parts;
    this.#log = log;
    this.#result = result;
    const abort = () => this.cancel();
    const settle = (end: OperationState) => {
      this.#end = end;
      signal?.removeEventListener('abort', abort);
    };
    result.then(
      () => settle('completed'),
      (cause: unknown) => {
        const error = asLoopwrightError(cause);
        settle(error.code === 'cancelled' ? 'cancelled' : 'failed');
        if (!this.#isAwaited && error.code !== 'cancelled') log.add(this, { operation: this.#name(), error });
      },
    );
    if (signal?.aborted === true) this.cancel();
    else signal?.addEventListener('abort', abort, { once: true });
  }

  /** `queued` here, `submitted` to the server, `running` there, or how it ended. */
  get state(): OperationState {
    if (this.#end !== undefined) return this.#end;
    return this.#current()?.state ?? 'queued';
  }

  /** Why it waits, in words for people; undefined while it runs and once it has ended. */
  get waitingFor(): string | undefined {
    return this.#end === undefined ? this.#current()?.waitingFor : undefined;
  }

  /** Id on the server, once it is accepted there (of the last part accepted, when the batch was split). */
  get operationId(): string | undefined {
    return this.#parts.findLast((part) => part.operationId !== undefined)?.operationId;
  }

  /**
   * Asks for the end of the operation. What was not submitted ends at once and is never sent; what was is ended by the
   * server. Either way the future then rejects with `cancelled`, or resolves if the operation was done before.
   * A cancelled `forwardBackward` leaves the gradient as it was before.
   */
  cancel(): void {
    for (const part of this.#parts) part.cancel();
  }

  // biome-ignore lint/suspicious/noThenProperty: it is awaited like a promise
  then<A = T, B = never>(
    onFulfilled?: ((value: T) => A | PromiseLike<A>) | null,
    onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#isAwaited = true;
    this.#log.forget(this);
    return this.#withEarlierFailures().then(onFulfilled, onRejected);
  }

  catch<B = never>(onRejected?: ((reason: unknown) => B | PromiseLike<B>) | null): Promise<T | B> {
    return this.then(null, onRejected);
  }

  finally(onFinally?: (() => void) | null): Promise<T> {
    return this.then().finally(onFinally);
  }

  async #withEarlierFailures(): Promise<T> {
    let value: T;
    try {
      value = await this.#result;
    } catch (cause) {
      const own = asLoopwrightError(cause);
      throw this.#surface(own) ?? own;
    }
    const earlier = this.#surface();
    if (earlier !== undefined) throw earlier;
    return value;
  }

  #surface(own?: LoopwrightError): LoopwrightError | undefined {
    const failures = this.#log.take();
    return failures.length === 0 ? undefined : unawaitedError(failures, own);
  }

  /** The first part that has not completed. */
  #current(): FuturePart | undefined {
    return this.#parts.find((part) => part.state !== 'completed') ?? this.#parts.at(-1);
  }

  #name(): string {
    return this.#current()?.name ?? 'operation';
  }
}
