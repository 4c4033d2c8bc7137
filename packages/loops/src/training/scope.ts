/** Work that is stopped as a whole: when the caller aborts, or when one part fails, the other parts are cancelled and awaited. */
import { LoopwrightError } from '@loopwright/protocol';

/** A call that can be cancelled by the signal it is given. */
export type Work<T> = (signal: AbortSignal) => PromiseLike<T>;

/** Calls of one run. */
export interface Scope {
  /** @throws `cancelled` once the caller has aborted */
  check(): void;
  /**
   * Starts all calls, in order, and gives all results, in order. When one fails, the others are cancelled and awaited before
   * its error is thrown. Each call has a signal of its own: dozens of listeners on one make Node warn of a leak.
   */
  all<T extends readonly unknown[]>(work: { readonly [K in keyof T]: Work<T[K]> }): Promise<T>;
  /** For work that may ignore its signal, such as a grader: its result, or a rejection when the caller aborts first. */
  orAborted<T>(work: Work<T>): Promise<T>;
}

/**
 * Runs `body` in a scope of its own. Nothing that was started by it goes on after it returns or throws, save for graders
 * that ignore the end of the run.
 *
 * @throws what `body` throws; `cancelled`, with the reason as cause, when the caller aborted
 */
export async function withScope<T>(signal: AbortSignal | undefined, body: (scope: Scope) => Promise<T>): Promise<T> {
  const open = new Set<AbortController>();
  const abortAll = (reason: unknown): void => {
    for (const controller of open) controller.abort(reason);
  };
  const abort = (): void => abortAll(signal?.reason);
  const check = (): void => {
    if (signal?.aborted === true) throw cancelled(signal);
  };
  const start = async <R>(work: Work<R>): Promise<R> => {
    const controller = new AbortController();
    open.add(controller);
    if (signal?.aborted === true) controller.abort(signal.reason);
    try {
      return await work(controller.signal);
    } finally {
      open.delete(controller);
    }
  };
  const all: Scope['all'] = async (work) => {
    check();
    const started = work.map(start);
    try {
      // true: the results of `work`, in its order
      return (await Promise.all(started)) as never;
    } catch (error) {
      abortAll(error);
      await Promise.allSettled(started);
      throw error;
    }
  };
  const orAborted: Scope['orAborted'] = (work) =>
    start(
      (own) =>
        new Promise((resolve, reject) => {
          const stop = (): void => reject(own.reason);
          if (own.aborted) stop();
          own.addEventListener('abort', stop, { once: true });
          work(own).then(resolve, reject);
        }),
    );
  check();
  signal?.addEventListener('abort', abort, { once: true });
  try {
    return await body({ check, all, orAborted });
  } catch (error) {
    // The caller's abort is the cause of whatever the parts then said.
    check();
    throw error;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
}

function cancelled(signal: AbortSignal): LoopwrightError {
  return new LoopwrightError({
    code: 'cancelled',
    message: 'the run was cancelled by its caller',
    cause: signal.reason,
  });
}
