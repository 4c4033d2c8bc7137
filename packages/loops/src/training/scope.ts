/** Work that is stopped as a whole: when the caller aborts, or when one part fails, the other parts are cancelled and awaited. */
import { LoopwrightError } from '@loopwright/protocol';

/** A call that can be cancelled by the signal it is given. */
export type Work<T> = (signal: AbortSignal) => PromiseLike<T>;

export interface StartOptions {
  /** The caller's abort leaves it alone, since half of it would be worse than all; the end of the scope does not. */
  readonly shielded?: boolean;
}

/** Work that goes on beside others. */
export interface Started<T> {
  readonly ended: Promise<T>;
  cancel(reason: unknown): void;
}

/** Calls of one run. */
export interface Scope {
  /** @throws `cancelled` once the caller has aborted */
  check(): void;
  /** Starts work that nobody has to await: its failure is told to who does, and the scope doesn't end before it has. */
  start<T>(work: Work<T>, options?: StartOptions): Started<T>;
  /**
   * Starts all calls, in order, and gives all results, in order. When one fails, the others are cancelled and awaited before
   * its error is thrown. Each call has a signal of its own: dozens of listeners on one make Node warn of a leak.
   */
  all<T extends readonly unknown[]>(work: { readonly [K in keyof T]: Work<T[K]> }, options?: StartOptions): Promise<T>;
  /** For work that may ignore its signal, such as a grader: its result, or a rejection when the caller aborts first. */
  orAborted<T>(work: Work<T>): Promise<T>;
  /** Cancels all that goes on, shielded or not, and waits for its end. */
  stop(): Promise<void>;
}

export interface ScopeOptions {
  /** What else the error of an abort is to say. */
  readonly note?: () => string | undefined;
}

/**
 * Runs `body` in a scope of its own. Nothing that was started by it goes on after it returns or throws, save for graders
 * that ignore the end of the run.
 *
 * @throws what `body` throws; `cancelled`, with the reason as cause, when the caller aborted
 */
export async function withScope<T>(
  signal: AbortSignal | undefined,
  body: (scope: Scope) => Promise<T>,
  { note }: ScopeOptions = {},
): Promise<T> {
  const open = new Map<AbortController, StartOptions>();
  const running = new Set<Promise<unknown>>();
  const abortAll = (reason: unknown): void => {
    for (const controller of open.keys()) controller.abort(reason);
  };
  const abort = (): void => {
    for (const [controller, { shielded = false }] of open) if (!shielded) controller.abort(signal?.reason);
  };
  const check = (): void => {
    if (signal?.aborted === true) throw cancelled(signal, note?.());
  };
  const start = <R>(work: Work<R>, options: StartOptions = {}): Started<R> => {
    const controller = new AbortController();
    open.set(controller, options);
    if (signal?.aborted === true && options.shielded !== true) controller.abort(signal.reason);
    const ended = run(work, controller.signal);
    const settled = ended.then(forget, forget);
    running.add(settled);
    function forget(): void {
      open.delete(controller);
      running.delete(settled);
    }
    return { ended, cancel: (reason) => controller.abort(reason) };
  };
  const stop = async (): Promise<void> => {
    abortAll(new LoopwrightError({ code: 'cancelled', message: 'the run has ended' }));
    await Promise.all(running);
  };
  const all: Scope['all'] = async (work, options) => {
    check();
    const started = work.map((each) => start(each, options).ended);
    try {
      // true: the results of `work`, in its order
      return (await Promise.all(started)) as never;
    } catch (error) {
      abortAll(error);
      await Promise.allSettled(started);
      throw error;
    }
  };
  const orAborted = <R>(work: Work<R>): Promise<R> =>
    start<R>(
      (own) =>
        new Promise((resolve, reject) => {
          const reason = (): void => reject(own.reason);
          if (own.aborted) reason();
          own.addEventListener('abort', reason, { once: true });
          work(own).then(resolve, reject);
        }),
    ).ended;
  check();
  signal?.addEventListener('abort', abort, { once: true });
  try {
    return await body({ check, start, all, orAborted, stop });
  } catch (error) {
    // The caller's abort is the cause of whatever the parts then said.
    check();
    throw error;
  } finally {
    await stop();
    signal?.removeEventListener('abort', abort);
  }
}

async function run<R>(work: Work<R>, signal: AbortSignal): Promise<R> {
  return work(signal);
}

/** What an aborted caller is told: what its own reason says, where it is a `cancelled`. @param note what else there is to say */
export function cancelled({ reason }: AbortSignal, note: string | undefined): LoopwrightError {
  const given = LoopwrightError.isInstance(reason) && reason.code === 'cancelled' ? reason.message : undefined;
  return new LoopwrightError({
    code: 'cancelled',
    message: [given ?? 'the run was cancelled by its caller', note].filter((part) => part !== undefined).join('; '),
    cause: reason,
  });
}
