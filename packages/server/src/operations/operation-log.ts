/**
 * The operation log: what was accepted, in which order, and how it ended. Once `accept` has returned, the operation will
 * be executed exactly once, whatever process dies in between; once `finish` has, its result and its price are kept.
 */
import { randomUUID } from 'node:crypto';
import {
  activeStatuses,
  complaint,
  LoopwrightError,
  type Operation,
  type OperationStatus,
  type TokenUsage,
  type VersionId,
} from '@loopwright/protocol';
import type { Selectable, Transaction } from 'kysely';
import type { BlobStore } from '../blobs/blob-store.js';
import type { Clock } from '../clock.js';
import { errorColumn, type SessionRecord, sessionFromRow } from '../sessions/session-record.js';
import { GroupCommit } from '../store/group-commit.js';
import type { Database } from '../store/open-database.js';
import { prepared, preparedInsert } from '../store/prepared.js';
import type { OperationsTable, Tables } from '../store/tables.js';
import { type AnyResult, charge, usageOf } from '../usage/ledger.js';
import { findEarlier, type Submission } from './earlier-submission.js';
import { EndWaiters } from './end-waiters.js';
import { OperationReader } from './operation-reader.js';
import { isTrainingType, type OperationRecord, operationFromRow, type ResolvedInputs } from './operation-record.js';
import { decodeOperation, decodeResult, encodeOperation, encodeResult } from './payload-codec.js';
import { Payloads, type StagedPayload } from './payloads.js';
import { hasTrainer, notActive } from './refused-submissions.js';

export interface Acceptance extends Submission {
  readonly session: SessionRecord;
  readonly operation: Operation;
  readonly resolved: Omit<ResolvedInputs, 'plan'>;
  /** Version whose files the operation reads. */
  readonly readsVersion: VersionId | null;
}

export interface Accepted {
  readonly record: OperationRecord;
  /** True when the operation had been accepted before, so that nothing new came about. */
  readonly repeated: boolean;
}

/** Is given the record of an operation before it is accepted. */
export type OnDraft = (record: OperationRecord) => void;

/** How an operation ended. */
export type Ending =
  | { readonly status: 'Completed'; readonly done: AnyResult }
  /** `usage` of an answer that was cancelled while its tokens were being handed over; other failures cost nothing. */
  | { readonly status: 'Failed' | 'Skipped'; readonly error: LoopwrightError; readonly usage?: TokenUsage };

/** Changes of the session that belong into the transaction of an ending. */
export interface SessionEffects {
  readonly nextSequenceNumber?: number;
  readonly gradientIncomplete?: boolean;
  readonly step?: number;
  readonly samplerVersion?: VersionId;
  /** Version that the weights now come from; read back from the loads of the log, so there is no column for it. */
  readonly parent?: VersionId;
}

export interface Finish {
  readonly session: SessionRecord;
  readonly record: OperationRecord;
  readonly ending: Ending;
  readonly startedAtMs: number | null;
  /** How long the engine worked; absent where none did. */
  readonly engineMs?: number | null;
  readonly effects: SessionEffects;
  /** Further writes of the same transaction, such as the rows of a saved version. */
  readonly alongside?: (trx: Transaction<Tables>) => Promise<void>;
}

interface Touch {
  readonly id: string;
  readonly now: number;
  /** 0 for none. */
  readonly sequenceNumber: number;
  /** Null for none. */
  readonly trainer: string | null;
}

/** Notes a submission in its session, and gives the session as it is then; a refusal undoes it. The first trainer stays. */
const touch = prepared<Touch>()((database, { id, now, sequenceNumber, trainer }) =>
  database
    .updateTable('sessions')
    .set(({ fn, ref, val }) => ({
      active_at_ms: now,
      last_sequence_number: fn('max', [ref('last_sequence_number'), val(sequenceNumber)]),
      trainer: fn.coalesce('trainer', val(trainer)),
    }))
    .where('id', '=', id)
    .returningAll(),
);
const add = preparedInsert('operations');
const end = prepared<Pick<Selectable<OperationsTable>, Ended>>()((database, row) =>
  database
    .updateTable('operations')
    .set({
      status: row.status,
      result_blob: row.result_blob,
      error: row.error,
      started_at_ms: row.started_at_ms,
      ended_at_ms: row.ended_at_ms,
      engine_ms: row.engine_ms,
    })
    .where('id', '=', row.id)
    .where('ended_at_ms', 'is', null),
);
type Ended = 'id' | 'status' | 'result_blob' | 'error' | 'started_at_ms' | 'ended_at_ms' | 'engine_ms';

/** A session's last activity is known to within so much. */
const activityGrainMs = 1_000;

export class OperationLog extends OperationReader {
  readonly #database: Database;
  readonly #commits: GroupCommit;
  readonly #payloads: Payloads;
  readonly #clock: Clock;
  readonly #waiters: EndWaiters;

  constructor({ database, blobs, clock }: { database: Database; blobs: BlobStore; clock: Clock }) {
    super(database);
    this.#database = database;
    this.#commits = new GroupCommit(database);
    this.#payloads = new Payloads({ database, blobs });
    this.#clock = clock;
    this.#waiters = new EndWaiters(clock);
  }

  /**
   * Stores an operation, or finds the one that was stored under the same sequence number or client token. It may begin at once, since whatever
   * ends it waits for the disk; nobody may be told that it was accepted before {@link durable} has resolved.
   *
   * @param onDraft is given the record before anything is stored. Work on it may begin, and may even end: its ending is written behind the
   * acceptance, and nothing is written of one that was not accepted in the end.
   * @throws `sequence_conflict` when that one had another payload (or another token), or a refused submission spent the number;
   * `session_not_active`; `session_has_trainer`; `disk_full`
   */
  async accept(
    { session, operation, resolved, readsVersion, ...submission }: Acceptance,
    onDraft: OnDraft = () => {},
  ): Promise<Accepted> {
    const payload = await this.#payloads.stage(session.workspaceId, encodeOperation(operation));
    const { sequenceNumber, clientToken, trainer, requestHash = payload.hash } = submission;
    const row = {
      workspace_id: session.workspaceId,
      id: randomUUID(),
      session_id: session.id,
      kind: isTrainingType(operation.type) ? ('training' as const) : ('sampling' as const),
      type: operation.type,
      sequence_number: sequenceNumber ?? null,
      client_token: clientToken ?? null,
      payload_hash: requestHash,
      payload_blob: payload.hash,
      result_blob: null,
      resolved: JSON.stringify({ ...resolved, plan: session.plan } satisfies ResolvedInputs),
      reads_version: readsVersion,
      status: 'Pending' satisfies OperationStatus,
      error: null,
      created_at_ms: this.#clock.now(),
      started_at_ms: null,
      ended_at_ms: null,
      engine_ms: null,
    };
    onDraft(operationFromRow(row));
    return this.#commits.commit(async (trx) => {
      const now = this.#clock.now();
      const change = { id: session.id, now, sequenceNumber: sequenceNumber ?? 0, trainer: trainer ?? null };
      const [current] = (await touch(trx, change)).rows;
      if (current === undefined)
        throw complaint({ code: 'unknown_session', field: 'session', expected: 'a session', got: session.name });
      const { status, plan, trainer: known } = sessionFromRow(current);
      if (sequenceNumber !== undefined || clientToken !== undefined) {
        const earlier = await findEarlier(trx, session.id, submission, requestHash);
        if (earlier !== undefined) return { record: earlier, repeated: true };
      }
      if (!activeStatuses.includes(status)) throw notActive(session.name, status);
      if (trainer !== undefined && known !== trainer) throw hasTrainer(session.name);
      const accepted = {
        ...row,
        resolved: JSON.stringify({ ...resolved, plan } satisfies ResolvedInputs),
        created_at_ms: now,
      };
      await payload.write(trx);
      await add(trx, accepted);
      return { record: operationFromRow(accepted), repeated: false };
    });
  }

  /** Resolves when everything that this log was told is on the disk. @throws as the database's `durable` */
  durable(): Promise<void> {
    return this.#database.durable();
  }

  /** Counts the sequence number of a refused submission as used, so that the operations behind it need not wait. */
  async spend(session: SessionRecord, sequenceNumber: number): Promise<boolean> {
    return this.#commits.run(async (trx) => {
      const taken = await trx
        .selectFrom('operations')
        .select('id')
        .where('session_id', '=', session.id)
        .where('sequence_number', '=', sequenceNumber)
        .executeTakeFirst();
      if (taken !== undefined) return false;
      const row = { workspace_id: session.workspaceId, session_id: session.id, sequence_number: sequenceNumber };
      await trx
        .insertInto('spent_numbers')
        .values(row)
        .onConflict((on) => on.doNothing())
        .execute();
      await trx
        .updateTable('sessions')
        .set(({ fn, ref, val }) => ({
          last_sequence_number: fn('max', [ref('last_sequence_number'), val(sequenceNumber)]),
        }))
        .where('id', '=', session.id)
        .execute();
      return true;
    });
  }

  async operation(record: OperationRecord): Promise<Operation> {
    return decodeOperation(await this.#payloads.get({ workspaceId: record.workspaceId, hash: record.payloadBlob }));
  }

  /** The result of a completed operation. */
  async result(record: OperationRecord): Promise<AnyResult> {
    if (record.resultBlob === null)
      throw new LoopwrightError({ code: 'internal', message: `operation ${record.id} has no result` });
    const bytes = await this.#payloads.get({ workspaceId: record.workspaceId, hash: record.resultBlob });
    return { type: record.type, result: decodeResult(record.type, bytes) } as AnyResult; // true: both members come from record.type
  }

  /**
   * The version that a save makes. It is drawn when the save first runs, and noted in the same transaction: a save that runs again
   * finds it, and neither a death in between nor a second attempt skips a number.
   */
  async reserveVersion(
    record: OperationRecord,
    draw: (trx: Transaction<Tables>) => Promise<VersionId>,
  ): Promise<VersionId> {
    return this.#commits.run(async (trx) => {
      const row = await trx
        .selectFrom('operations')
        .select('resolved')
        .where('id', '=', record.id)
        .executeTakeFirstOrThrow();
      const known = JSON.parse(row.resolved) as ResolvedInputs; // true: only this file writes the column
      if (known.version !== undefined) return known.version;
      const version = await draw(trx);
      const resolved = JSON.stringify({ ...known, version } satisfies ResolvedInputs);
      await trx.updateTable('operations').set({ resolved }).where('id', '=', record.id).execute();
      return version;
    });
  }

  /**
   * Ends an operation: result, price and effects on the session in one transaction, then wakes whoever waits.
   * @returns false when it had ended before; then nothing was written
   * @throws `disk_full`: nothing was written
   */
  async finish({
    session,
    record,
    ending,
    startedAtMs,
    engineMs = null,
    effects,
    alongside,
  }: Finish): Promise<boolean> {
    const result = ending.status === 'Completed' ? await this.#stageResult(record, ending.done) : undefined;
    const now = this.#clock.now();
    const written = await this.#commits.run(async (trx) => {
      const { numAffectedRows } = await end(trx, {
        id: record.id,
        status: ending.status,
        result_blob: result?.hash ?? null,
        error: ending.status === 'Completed' ? null : errorColumn(ending.error),
        started_at_ms: startedAtMs,
        ended_at_ms: now,
        engine_ms: engineMs,
      });
      if (numAffectedRows === 0n) return false;
      await result?.write(trx);
      if (ending.status === 'Completed') {
        await charge(trx, { session, operation: record, usage: usageOf(ending.done), atMs: now });
        await alongside?.(trx);
      } else if (ending.usage !== undefined) {
        await charge(trx, { session, operation: record, usage: ending.usage, atMs: now });
      }
      // What was accepted a moment ago has said already that the session is at work.
      const saysNothing = Object.keys(effects).length === 0 && now - record.createdAtMs < activityGrainMs;
      if (!saysNothing) await this.#applyEffects(trx, session.id, effects);
      return true;
    });
    if (written) {
      const isDone = ending.status === 'Completed';
      const rest = { resultBlob: result?.hash ?? null, startedAtMs, endedAtMs: now, engineMs };
      this.#waiters.wake(record.id, isDone ? { ...record, ...rest, status: 'Completed' } : undefined);
    }
    return written;
  }

  /** Effects without an ending, such as the turn of an operation that was cancelled while it waited. */
  async apply(sessionId: string, effects: SessionEffects): Promise<void> {
    await this.#commits.run((trx) => this.#applyEffects(trx, sessionId, effects));
  }

  /** As {@link EndWaiters.whenEnded}. */
  whenEnded(record: OperationRecord, waitMs: number, signal?: AbortSignal): Promise<OperationRecord | undefined> {
    return this.#waiters.whenEnded(record, waitMs, signal);
  }

  /** Lets every held request go and holds no further one, when the server closes. */
  wakeAll(): void {
    this.#waiters.wakeAll();
  }

  #stageResult(record: OperationRecord, { type, result }: AnyResult): Promise<StagedPayload> {
    return this.#payloads.stage(record.workspaceId, encodeResult(type, result));
  }

  async #applyEffects(trx: Transaction<Tables>, sessionId: string, effects: SessionEffects): Promise<void> {
    const { nextSequenceNumber, gradientIncomplete, step, samplerVersion } = effects;
    const now = this.#clock.now();
    await trx
      .updateTable('sessions')
      .set({
        active_at_ms: now,
        ...(nextSequenceNumber === undefined ? {} : { next_sequence_number: nextSequenceNumber }),
        ...(gradientIncomplete === undefined ? {} : { gradient_incomplete: gradientIncomplete ? 1 : 0 }),
        ...(step === undefined ? {} : { step }),
        ...(samplerVersion === undefined ? {} : { sampler_version: samplerVersion }),
      })
      .where('id', '=', sessionId)
      .execute();
  }
}
