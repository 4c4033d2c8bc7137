/** An accepted operation as the log keeps it, and the translation from its row. */
import type { ExecutionPlan } from '@loopwright/engine';
import {
  LoopwrightError,
  type OperationStatus,
  type OperationType,
  type SamplingOperation,
  type TrainingOperation,
  trainingOperationTypes,
  type VersionId,
  type WeightsRef,
  type WireError,
} from '@loopwright/protocol';
import type { Selectable } from 'kysely';
import type { OperationsTable } from '../store/tables.js';

/** What acceptance drew or looked up, so that a replay needs nothing else. */
export interface ResolvedInputs {
  readonly seed?: number;
  /** What "latest" meant. */
  readonly weights?: WeightsRef;
  /** Id that a save will have; given when it first runs, so that a repetition after a crash makes the same version. */
  readonly version?: VersionId;
  /** Of a pass: how many. */
  readonly datums?: number;
  /** Of a load. */
  readonly loadOptimizer?: boolean;
  /** Null when the session had none yet. */
  readonly plan: ExecutionPlan | null;
}

interface Common {
  readonly workspaceId: string;
  readonly id: string;
  readonly sessionId: string;
  readonly clientToken: string | null;
  readonly payloadHash: string;
  readonly payloadBlob: string;
  readonly resultBlob: string | null;
  readonly resolved: ResolvedInputs;
  readonly readsVersion: VersionId | null;
  readonly status: OperationStatus;
  readonly error: LoopwrightError | null;
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly endedAtMs: number | null;
  /** How long the engine worked on what came of it; null where none did, and in logs of before it was measured. */
  readonly engineMs: number | null;
}

export interface TrainingRecord extends Common {
  readonly kind: 'training';
  readonly type: TrainingOperation['type'];
  /** From 1; integers up to 2^53 here, 64 bits in the database. */
  readonly sequenceNumber: number;
}

export interface SamplingRecord extends Common {
  readonly kind: 'sampling';
  readonly type: SamplingOperation['type'];
}

export type OperationRecord = TrainingRecord | SamplingRecord;

export function operationFromRow(row: Selectable<OperationsTable>): OperationRecord {
  const common: Common = {
    workspaceId: row.workspace_id,
    id: row.id,
    sessionId: row.session_id,
    clientToken: row.client_token,
    payloadHash: row.payload_hash,
    payloadBlob: row.payload_blob,
    resultBlob: row.result_blob,
    resolved: JSON.parse(row.resolved),
    readsVersion: row.reads_version,
    status: row.status as OperationStatus, // true: only this package writes the column, from the same type
    error: row.error === null ? null : LoopwrightError.fromJSON(JSON.parse(row.error) as WireError), // true: written by errorColumn
    createdAtMs: row.created_at_ms,
    startedAtMs: row.started_at_ms,
    endedAtMs: row.ended_at_ms,
    engineMs: row.engine_ms,
  };
  const type = row.type as OperationType; // true, as above
  return isTrainingType(type)
    ? { ...common, kind: 'training', type, sequenceNumber: row.sequence_number ?? 0 }
    : { ...common, kind: 'sampling', type };
}

export function isTrainingType(type: OperationType): type is TrainingOperation['type'] {
  return trainingOperationTypes.some((known) => known === type);
}
