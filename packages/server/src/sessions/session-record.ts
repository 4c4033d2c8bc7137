/** A session as the database keeps it, and the translation from and to its row. */
import type { ExecutionPlan } from '@loopwright/engine';
import {
  complaint,
  LoopwrightError,
  type SessionSpec,
  type SessionStatus,
  type SessionTraining,
  type VersionId,
  type WireError,
} from '@loopwright/protocol';
import type { Selectable } from 'kysely';
import type { SessionsTable } from '../store/tables.js';

/** What differs between wires once an operation is accepted. Fixed when the session is created. */
export interface WirePolicy {
  /** `fail-next-step`: after a failed forwardBackward the next optimStep fails with `gradient_incomplete` and clears the gradient. */
  readonly incompleteGradient: 'fail-next-step' | 'ignore';
  /** A gap in the sequence numbers fails the session after this long; null waits for ever. */
  readonly gapTimeoutMs: number | null;
}

/** As a session is kept: its spec, or that of one which only samples. */
export type RecordedSpec = Omit<SessionSpec, 'training'> & { readonly training: SessionTraining };

export interface SessionRecord {
  readonly workspaceId: string;
  readonly id: string;
  readonly name: string;
  readonly status: SessionStatus;
  readonly spec: RecordedSpec;
  /** Fields that the wire wants echoed; opaque but for `wire`, the name of the wire where it isn't SageMaker's. */
  readonly echo: Readonly<Record<string, unknown>>;
  readonly policy: WirePolicy;
  readonly plan: ExecutionPlan | null;
  readonly groupName: string;
  readonly error: LoopwrightError | null;
  /** 0 before the first. */
  readonly lastSequenceNumber: number;
  readonly nextSequenceNumber: number;
  readonly gradientIncomplete: boolean;
  readonly step: number;
  /** What a sampling request without a version reads; null is the base model. */
  readonly samplerVersion: VersionId | null;
  readonly trainer: string | null;
  readonly createdAtMs: number;
  readonly modifiedAtMs: number;
  readonly activeAtMs: number;
  readonly endedAtMs: number | null;
}

/** States in which a session holds a place in the quota. */
export const liveStatuses: readonly SessionStatus[] = ['Created', 'Scheduled', 'Running', 'Blocked', 'Stopping'];

/**
 * Names of sessions that the server makes for itself begin so, which no name of a caller does: they answer for base models and saved
 * versions, train nothing, are in no list, and end with the server.
 */
export const servingPrefix = '~';

export function isServing({ name }: Pick<SessionRecord, 'name'>): boolean {
  return name.startsWith(servingPrefix);
}

/** States from which a session can be deleted. */
export const deletableStatuses: readonly SessionStatus[] = ['Stopped', 'Failed', 'Expired', 'DeletionFailed'];

export function sessionFromRow(row: Selectable<SessionsTable>): SessionRecord {
  return {
    workspaceId: row.workspace_id,
    id: row.id,
    name: row.name,
    status: row.status as SessionStatus, // true: only this package writes the column, from the same type
    spec: JSON.parse(row.spec),
    echo: JSON.parse(row.echo),
    policy: JSON.parse(row.policy),
    plan: row.plan === null ? null : JSON.parse(row.plan),
    groupName: row.group_name,
    error: row.error === null ? null : LoopwrightError.fromJSON(JSON.parse(row.error) as WireError), // true: written by errorColumn
    lastSequenceNumber: row.last_sequence_number,
    nextSequenceNumber: row.next_sequence_number,
    gradientIncomplete: row.gradient_incomplete === 1,
    step: row.step,
    samplerVersion: row.sampler_version,
    trainer: row.trainer,
    createdAtMs: row.created_at_ms,
    modifiedAtMs: row.modified_at_ms,
    activeAtMs: row.active_at_ms,
    endedAtMs: row.ended_at_ms,
  };
}

/** An error as a column, without the request id of the moment. */
export function errorColumn(error: LoopwrightError): string {
  const { code, message, details } = error;
  return JSON.stringify({ code, message: message.slice(0, 1024), details } satisfies WireError);
}

/** The spec of a session that trains. @throws `invalid_argument` for one that only samples */
export function trainedSpec({ name, spec }: Pick<SessionRecord, 'name' | 'spec'>): SessionSpec {
  const { training } = spec;
  if (training.type !== 'none') return { ...spec, training };
  throw complaint({
    field: 'session',
    expected: 'a session that trains',
    got: `${name}, which only samples`,
    remedy: 'create a session for the training',
  });
}
