/** Time as an option, so that tests of limits and expiry never sleep. */

export interface Clock {
  /** Milliseconds since the epoch; goes on evenly, whatever is done to the time of day, until `resync`. */
  now(): number;
  /** Milliseconds since some moment of this process; goes on evenly. */
  elapsedMs(): number;
  /** Takes the time of day up again. Returns by how many milliseconds it had been moved, or the machine had slept. */
  resync(): number;
  /** Runs `action` once after `delayMs`; the returned function calls it off. Does not keep the process alive. */
  after(delayMs: number, action: () => void): () => void;
}

/** Where a clock reads the time of day and the time that goes by, in milliseconds. */
export interface TimeSources {
  readonly timeOfDay: () => number;
  readonly elapsed: () => number;
}

/** A clock whose `now` no change of the time of day can move: sessions and versions don't expire because a laptop slept. */
export function steadyClock({ timeOfDay, elapsed }: TimeSources): Clock {
  let origin = timeOfDay() - elapsed();
  return {
    now: () => Math.round(origin + elapsed()),
    elapsedMs: elapsed,
    resync: () => {
      const moved = timeOfDay() - elapsed() - origin;
      origin += moved;
      return Math.round(moved);
    },
    after: (delayMs, action) => {
      const timer = setTimeout(action, delayMs);
      timer.unref();
      return () => clearTimeout(timer);
    },
  };
}

export const systemClock: Clock = steadyClock({ timeOfDay: Date.now, elapsed: () => performance.now() });
