/**
 * Takes snapshots of a session while it works, so that making it again after a crash costs a bounded amount of engine time. They are
 * written beside the work; one that fails costs nothing but time: the session is then made from an earlier one, or from its log.
 */
import { randomUUID } from 'node:crypto';
import { asLoopwrightError } from '@loopwright/protocol';
import type { Logger } from 'pino';
import type { TrainingRecord } from '../operations/operation-record.js';
import type { EngineResidence } from '../scheduler/engine-residence.js';
import type { SessionRecord } from '../sessions/session-record.js';
import { engineMsOf, RedoCost, type RedoKind } from './redo-cost.js';
import type { SnapshotMetadata, SnapshotStore } from './snapshot-store.js';

export interface SnapshotKeeperOptions {
  readonly session: SessionRecord;
  readonly residence: EngineResidence;
  readonly store: SnapshotStore;
  readonly logger: Logger;
  /** Engine time that is done again after a crash, at most; null takes no snapshots. */
  readonly maxRedoMs: number | null;
}

/** Where the session stands after an operation. */
export interface Position {
  readonly nextSequenceNumber: number;
  readonly gradientIncomplete: boolean;
}

export class SnapshotKeeper {
  readonly #options: SnapshotKeeperOptions;
  readonly #abort = new AbortController();
  #redo = new RedoCost();
  /** Since the snapshot that is being written was begun. */
  #since: RedoCost | undefined;
  #writing: Promise<void> | undefined;
  /** After a failure: not before the cost has grown to this. */
  #notBeforeMs = 0;

  constructor(options: SnapshotKeeperOptions) {
    this.#options = options;
  }

  /** The session was made anew, by running these operations again. */
  rebuilt(replayed: readonly TrainingRecord[]): void {
    this.#redo = new RedoCost();
    this.#since = undefined;
    this.#notBeforeMs = 0;
    for (const record of replayed) this.#redo.add(record.type, 'completed', engineMsOf(record));
  }

  /**
   * An operation had its turn. Resolves when the next may have it: a snapshot that became due is of the session as it is now,
   * and is written meanwhile. One is due when another operation of that length would cost too much. Never rejects.
   */
  async after(type: TrainingRecord['type'], kind: RedoKind, engineMs: number, position: Position): Promise<void> {
    const { maxRedoMs } = this.#options;
    this.#redo.add(type, kind, engineMs);
    this.#since?.add(type, kind, engineMs);
    const { totalMs } = this.#redo;
    const changes = kind === 'completed' && (type === 'forward-backward' || type === 'optim-step');
    const isDue = changes && maxRedoMs !== null && totalMs + engineMs >= maxRedoMs && totalMs >= this.#notBeforeMs;
    if (!isDue || this.#writing !== undefined || this.#abort.signal.aborted) return;
    try {
      await this.#begin(position);
    } catch (error) {
      this.#failed(error);
    }
  }

  /** Gives up what is being written, and takes no more. */
  async stop(): Promise<void> {
    this.#abort.abort();
    await this.#writing;
  }

  async #begin({ nextSequenceNumber, gradientIncomplete }: Position): Promise<void> {
    const { session, residence, store } = this.#options;
    const engine = await residence.engine();
    const { plan } = residence;
    if (!residence.isIn(engine) || plan === undefined) return;
    const snapshot = { sessionId: session.id, id: randomUUID(), nextSequenceNumber };
    const metadata: SnapshotMetadata = { session: session.id, nextSequenceNumber, gradientIncomplete };
    const { signal } = this.#abort;
    const directory = store.directory(snapshot);
    const since = new RedoCost();
    this.#since = since;
    const write = async () => {
      try {
        const { sizeBytes } = await engine.snapshot(session.name, {
          directory,
          metadata: JSON.stringify(metadata),
          signal,
        });
        signal.throwIfAborted();
        await store.add(session, { ...snapshot, sizeBytes }, plan);
        if (this.#since === since) this.#redo = since;
        this.#notBeforeMs = 0;
      } catch (error) {
        await store.discard(snapshot).catch(() => {}); // goes with the next start
        if (!signal.aborted) this.#failed(error);
      } finally {
        if (this.#since === since) this.#since = undefined;
        this.#writing = undefined;
      }
    };
    this.#writing = write();
  }

  #failed(cause: unknown): void {
    const { session, logger, maxRedoMs } = this.#options;
    const { code } = asLoopwrightError(cause);
    this.#notBeforeMs = this.#redo.totalMs + (maxRedoMs ?? 0);
    logger.warn({ session: session.name, code }, 'no snapshot could be taken: more is done again after a crash');
  }
}
