/** Gaps in the sequence numbers: the session is Blocked while one is open, and fails when it stays open for too long. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import type { Clock } from '../clock.js';
import type { SessionRecord } from '../sessions/session-record.js';
import type { SessionRepository } from '../sessions/session-repository.js';

export interface GapWatchOptions {
  readonly session: SessionRecord;
  readonly sessions: SessionRepository;
  readonly clock: Clock;
  readonly onTimeout: (error: LoopwrightError) => void;
}

export class GapWatch {
  readonly #options: GapWatchOptions;
  #missing: number | undefined;
  #cancelTimer: () => void = () => {};

  constructor(options: GapWatchOptions) {
    this.#options = options;
  }

  /** `waiting` operations wait for the number `missing`. */
  async open(missing: number, waiting: number): Promise<void> {
    if (this.#missing !== undefined) return;
    this.#missing = missing;
    const { session, sessions, clock, onTimeout } = this.#options;
    const error = complaint({
      code: 'sequence_conflict',
      message: `sequence number ${missing} is missing; ${waiting} later operation${waiting === 1 ? ' waits' : 's wait'} for it`,
      field: 'sequenceNumber',
      expected: String(missing),
      got: 'later ones only',
      remedy: `submit the operation with number ${missing}`,
    });
    await sessions.change(session.id, { from: ['Running', 'Blocked'], to: 'Blocked', error });
    const { gapTimeoutMs } = session.policy;
    if (gapTimeoutMs === null || this.#missing !== missing) return;
    this.#cancelTimer = clock.after(gapTimeoutMs, () => {
      const seconds = Math.round(gapTimeoutMs / 1000);
      onTimeout(
        complaint({
          code: 'timeout',
          message: `sequence number ${missing} did not arrive within ${seconds} s`,
          field: 'sequenceNumber',
          expected: `${missing} within ${seconds} s`,
          got: 'later ones only',
          remedy: 'create a session, and submit operations under numbers without a gap',
        }),
      );
    });
  }

  /** The number came, or need not come. */
  async close(): Promise<void> {
    if (this.#missing === undefined) return;
    this.stop();
    const { session, sessions } = this.#options;
    await sessions.change(session.id, { from: ['Blocked'], to: 'Running', error: null });
  }

  /** The session ends or is let go. */
  stop(): void {
    this.#missing = undefined;
    this.#cancelTimer();
  }
}
