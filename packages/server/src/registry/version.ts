/** A saved version of a model, and the translation from its row. */
import type { ApprovalStatus, RegisteredVersion, TrainedData, VersionMetric, VersionState } from '@loopwright/protocol';
import type { Selectable } from 'kysely';
import type { VersionsTable } from '../store/tables.js';

/** A version without its metrics, which are rows of their own. */
export interface Version extends Omit<RegisteredVersion, 'metrics'> {
  readonly workspaceId: string;
}

export interface DescribedVersion extends Version {
  readonly metrics: readonly VersionMetric[];
}

/** What the log says that a version was trained on, and how far it was read for that. */
export interface NotedData extends TrainedData {
  /** Sequence number up to which passes were counted or dropped; the next save of the session goes on behind it. */
  readonly through: number;
}

/** The status of a version of which nobody has said anything: see decision 26. */
export const undecided = 'PendingManualApproval' satisfies ApprovalStatus;

export function versionFromRow(row: Selectable<VersionsTable>, nowMs: number): Version {
  const noted: NotedData | null = row.data === null ? null : JSON.parse(row.data);
  return {
    workspaceId: row.workspace_id,
    id: row.id,
    groupName: row.group_name,
    number: row.number,
    kind: row.kind,
    state: stateOf(row, nowMs),
    description: row.description,
    tags: JSON.parse(row.tags),
    approval: {
      // Rows of older releases say Approved before anybody decided. true: only this package writes the column, from the same type
      status: row.approval_at_ms === null ? undecided : (row.approval_status as ApprovalStatus),
      note: row.approval_note,
      decidedAtMs: row.approval_at_ms,
    },
    baseModel: row.base_model,
    training: JSON.parse(row.training),
    lineage: {
      sessionId: row.session_id,
      sessionName: row.session_name,
      operationId: row.operation_id,
      step: row.step,
      parent: row.parent,
      data: noted === null ? null : withoutThrough(noted),
    },
    sizeBytes: row.size_bytes,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
    deletedAtMs: row.deleted_at_ms,
  };
}

function stateOf(row: Selectable<VersionsTable>, nowMs: number): VersionState {
  if (row.deleted_at_ms !== null) return 'deleted';
  return row.expires_at_ms !== null && row.expires_at_ms <= nowMs ? 'expired' : 'available';
}

function withoutThrough({ digest, passes, datums, tokens }: NotedData): TrainedData {
  return { digest, passes, datums, tokens };
}
