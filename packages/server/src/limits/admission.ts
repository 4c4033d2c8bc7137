/** Which requests are let in: so many at once, and none once the server closes. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import type { Clock } from '../clock.js';
import { BodyRoom, type BodyShare } from './body-room.js';
import type { Limits } from './limits.js';

export interface AdmissionOptions {
  readonly limits: Limits;
  readonly clock: Clock;
}

export class Admission {
  readonly limits: Limits;
  readonly clock: Clock;
  readonly #proven: BodyRoom;
  readonly #unproven: BodyRoom;
  #inside = 0;
  #closed = false;
  #onEmpty: (() => void) | undefined;

  constructor({ limits, clock }: AdmissionOptions) {
    this.limits = limits;
    this.clock = clock;
    const { roomWaitMs: waitMs, bodyMemoryBytes, unprovenMemoryBytes } = limits;
    const unproven = Math.min(unprovenMemoryBytes, bodyMemoryBytes);
    this.#unproven = new BodyRoom({ bytes: unproven, waitMs, clock });
    this.#proven = new BodyRoom({ bytes: bodyMemoryBytes - unproven, waitMs, clock });
  }

  /**
   * Lets a request in; what is returned is called when it has been answered.
   * @throws `limit_exceeded`, `shutting_down`
   */
  enter(): () => void {
    if (this.#closed) throw shuttingDown();
    if (this.#inside >= this.limits.requests) throw tooMany(this.limits.requests);
    this.#inside += 1;
    let isInside = true;
    return () => {
      if (!isInside) return;
      isInside = false;
      this.#inside -= 1;
      if (this.#inside === 0) this.#onEmpty?.();
    };
  }

  /** Room for a body. Those whose sender has proven nothing yet have a room of their own, so that they never keep the others out. */
  room(sender: 'proven' | 'unproven', bytes: number, signal: AbortSignal): Promise<BodyShare> {
    return (sender === 'proven' ? this.#proven : this.#unproven).take(bytes, signal);
  }

  get isClosed(): boolean {
    return this.#closed;
  }

  /** From now on no request is let in. */
  close(): void {
    this.#closed = true;
  }

  /** Resolves when every request has been answered, or after `waitMs`. */
  async emptied(waitMs: number): Promise<void> {
    if (this.#inside === 0) return;
    await new Promise<void>((resolve) => {
      const cancel = this.clock.after(waitMs, resolve);
      this.#onEmpty = () => {
        cancel();
        resolve();
      };
    });
  }
}

function tooMany(limit: number): LoopwrightError {
  return complaint({ code: 'limit_exceeded', field: 'requests', expected: `at most ${limit} at once`, got: 'more' });
}

export function shuttingDown(): LoopwrightError {
  return complaint({
    code: 'shutting_down',
    field: 'server',
    expected: 'a server that takes requests',
    got: 'one that is closing',
  });
}
