/** Time and chance as options, so that tests need not wait. */
import { LoopwrightError } from '@loopwright/protocol';

export interface Clock {
  /** Milliseconds since any fixed moment. */
  readonly now: () => number;
  /** @throws `cancelled` when the signal aborts */
  readonly sleep: (ms: number, signal?: AbortSignal) => Promise<void>;
}

export function cancelledBy(signal: AbortSignal): LoopwrightError {
  return new LoopwrightError({ code: 'cancelled', message: 'the caller aborted the call', cause: signal.reason });
}

export const systemClock: Clock = {
  now: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted === true) return reject(cancelledBy(signal));
      const abort = () => {
        clearTimeout(timer);
        reject(cancelledBy(signal!)); // only called by the signal
      };
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', abort);
        resolve();
      }, ms);
      signal?.addEventListener('abort', abort, { once: true });
    }),
};

/** `work`, or `cancelled` as soon as the signal aborts; shared work goes on for the others who wait for it. */
export async function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  let abort = () => {};
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(cancelledBy(signal));
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
