/** Time as an option, so that tests of limits and expiry never sleep. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Milliseconds since some moment of this process; goes on evenly, whatever is done to the time of day. */
  elapsedMs(): number;
  /** Runs `action` once after `delayMs`; the returned function calls it off. Does not keep the process alive. */
  after(delayMs: number, action: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsedMs: () => performance.now(),
  after: (delayMs, action) => {
    const timer = setTimeout(action, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
