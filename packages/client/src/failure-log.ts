/** Failures that nobody has awaited: kept, so that they come out at the next await or at dispose, and never kill the process. */
import { LoopwrightError } from '@loopwright/protocol';

export interface UnawaitedFailure {
  /** Such as `forward-backward (sequence number 3)`. */
  readonly operation: string;
  readonly error: LoopwrightError;
}

export class FailureLog {
  readonly #failures = new Map<object, UnawaitedFailure>();
  /** Of the samplers that a training client made: told when it is closed, not at its awaits. */
  readonly #children: FailureLog[] = [];

  /** A log of its own for a client that this one's owner made. */
  child(): FailureLog {
    const log = new FailureLog();
    this.#children.push(log);
    return log;
  }

  /** @param key identity of the future that failed */
  add(key: object, failure: UnawaitedFailure): void {
    this.#failures.set(key, failure);
  }

  /** Somebody awaits the future now. */
  forget(key: object): void {
    this.#failures.delete(key);
  }

  /** Hands out what was kept, once. */
  take(): readonly UnawaitedFailure[] {
    const taken = [...this.#failures.values()];
    this.#failures.clear();
    return taken;
  }

  /** As {@link FailureLog.take}, with what children kept. */
  takeAll(): readonly UnawaitedFailure[] {
    return [...this.take(), ...this.#children.flatMap((child) => child.takeAll())];
  }
}

/**
 * The error that tells of earlier failures: `own` with them added, or `operation_failed`.
 * `cause` is the first of them (or all, as an AggregateError); `details.unawaited` lists operation and code.
 */
export function unawaitedError(failures: readonly UnawaitedFailure[], own?: LoopwrightError): LoopwrightError {
  const errors = failures.map(({ error }) => error);
  const told = failures
    .map(({ operation, error }) => `${operation} failed and was not awaited: ${error.message}`)
    .join('; ');
  return new LoopwrightError({
    code: own?.code ?? 'operation_failed',
    message: own === undefined ? told : `${own.message}; before it, ${told}`,
    details: {
      ...own?.details,
      unawaited: failures.map(({ operation, error }) => ({ operation, code: error.code })),
    },
    cause: errors.length === 1 ? errors[0] : new AggregateError(errors, told),
  });
}
