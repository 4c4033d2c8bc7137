/** Work beside requests: done once, one at a time, or again and again. */
import { LoopwrightError } from '@loopwright/protocol';
import type { Logger } from 'pino';
import type { Clock } from './clock.js';

export function once(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined;
  return () => {
    running ??= work();
    return running;
  };
}

/** Calls that come while one runs wait for it and then run themselves. */
export function oneAtATime(work: () => Promise<void>): () => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  return () => {
    last = last.catch(() => {}).then(work); // the caller of a failed one was told
    return last;
  };
}

interface Repeat {
  readonly clock: Clock;
  readonly everyMs: number;
  readonly work: () => Promise<void>;
  readonly logger: Logger;
}

/** Repeats work until it is stopped; stopping waits for the one that runs. */
export function repeat({ clock, everyMs, work, logger }: Repeat): { stop(): Promise<void> } {
  let stopped = false;
  let running: Promise<void> = Promise.resolve();
  let cancel = () => {};
  const next = () => {
    cancel = clock.after(everyMs, () => {
      running = work()
        .catch((error: unknown) => {
          logger.error({ code: LoopwrightError.isInstance(error) ? error.code : 'internal' }, 'sweep failed');
        })
        .then(() => {
          if (!stopped) next();
        });
    });
  };
  next();
  return {
    stop: async () => {
      stopped = true;
      cancel();
      await running;
    },
  };
}
