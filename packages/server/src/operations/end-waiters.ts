/** Requests that are held until an operation has ended. */
import type { Clock } from '../clock.js';
import type { OperationRecord } from './operation-record.js';

export class EndWaiters {
  readonly #clock: Clock;
  readonly #byId = new Map<string, Set<(ended?: OperationRecord) => void>>();
  #holdsNobody = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Resolves when the operation has ended, the time is over or the signal fires; whichever is first.
   * @returns the record as it is now, where that is known without another look at the log
   */
  async whenEnded(record: OperationRecord, waitMs: number, signal?: AbortSignal): Promise<OperationRecord | undefined> {
    if (record.endedAtMs !== null) return record;
    if (waitMs <= 0 || signal?.aborted === true || this.#holdsNobody) return undefined;
    return new Promise<OperationRecord | undefined>((resolve) => {
      const waiters = this.#byId.get(record.id) ?? new Set();
      this.#byId.set(record.id, waiters);
      const done = (ended?: OperationRecord) => {
        cancelTimer();
        signal?.removeEventListener('abort', giveUp);
        waiters.delete(done);
        if (waiters.size === 0) this.#byId.delete(record.id);
        resolve(ended);
      };
      const giveUp = () => done();
      const cancelTimer = this.#clock.after(waitMs, giveUp);
      signal?.addEventListener('abort', giveUp, { once: true });
      waiters.add(done);
    });
  }

  /** Lets every held request go and holds no further one, when the server closes. */
  wakeAll(): void {
    this.#holdsNobody = true;
    for (const id of [...this.#byId.keys()]) this.wake(id);
  }

  /** An operation has ended; `ended` is its record where that is at hand. */
  wake(id: string, ended?: OperationRecord): void {
    for (const done of [...(this.#byId.get(id) ?? [])]) done(ended);
  }
}
