/** The time of calls of a user's code, which may never answer, or only when others have ended. */
import { LoopwrightError } from '@loopwright/protocol';

/** Of a rollout, or of the judging of an answer, where nothing else is said: ten minutes. */
export const rolloutTimeoutMs = 600_000;

/** Calls under way. Those that share few places, such as a sandbox's, wait for one another: while some end, none is stuck. */
export class CallTimes {
  readonly #limitMs: number;
  readonly #restarts = new Set<() => void>();

  /** @param limitMs that a call may take while no other ends */
  constructor(limitMs: number) {
    this.#limitMs = limitMs;
  }

  /**
   * @param signal calls it off. Without one nothing could, so the process is not kept for what is left of the time.
   * @throws `grader_timeout`; the signal's reason; what the work throws
   */
  async bounded<T>(name: string, work: () => T | Promise<T>, signal?: AbortSignal): Promise<T> {
    let timer: NodeJS.Timeout | undefined;
    let restart = (): void => {};
    let calledOff = (): void => {};
    const late = new Promise<never>((_, reject) => {
      restart = () => {
        clearTimeout(timer);
        timer = setTimeout(() => reject(tooLate(name, this.#limitMs)), this.#limitMs);
        if (signal === undefined) timer.unref();
      };
      calledOff = () => reject(signal?.reason);
    });
    late.catch(() => {}); // it may lose the race
    signal?.throwIfAborted();
    signal?.addEventListener('abort', calledOff, { once: true });
    restart();
    this.#restarts.add(restart);
    try {
      const made = await Promise.race([work(), late]);
      this.#restarts.delete(restart);
      for (const other of this.#restarts) other();
      return made;
    } finally {
      this.#restarts.delete(restart);
      clearTimeout(timer);
      signal?.removeEventListener('abort', calledOff);
    }
  }
}

function tooLate(name: string, limitMs: number): LoopwrightError {
  return new LoopwrightError({
    code: 'grader_timeout',
    message: `${name} gave nothing within ${limitMs / 1000} s; let it resolve, or bound its work`,
    details: { field: name, remedy: 'let it resolve, or bound its work' },
  });
}
