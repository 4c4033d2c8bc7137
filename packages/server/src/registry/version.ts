/** A saved version of a model, and the translation from its row. */
import type { TrainingSpec, VersionId } from '@loopwright/protocol';
import type { Selectable } from 'kysely';
import type { VersionsTable } from '../store/tables.js';

/** `sampler`: weights to sample from; `merged`: these and the whole folded model; `state`: weights and optimizer, resumable. */
export type VersionKind = 'sampler' | 'merged' | 'state';
export const approvalStatuses = ['Approved', 'Rejected', 'PendingManualApproval'] as const;
export type ApprovalStatus = (typeof approvalStatuses)[number];

export interface Version {
  readonly workspaceId: string;
  /** `group/number`. */
  readonly id: VersionId;
  readonly groupName: string;
  readonly number: number;
  readonly kind: VersionKind;
  readonly description: string;
  readonly approvalStatus: ApprovalStatus;
  readonly baseModel: string;
  /** What the session that saved it trains. */
  readonly training: TrainingSpec;
  readonly sessionId: string;
  readonly sessionName: string;
  readonly operationId: string;
  /** Optimizer steps behind it. */
  readonly step: number;
  /** Version from which its session's weights came, where they were loaded. */
  readonly parent: VersionId | null;
  readonly sizeBytes: number;
  readonly createdAtMs: number;
  readonly expiresAtMs: number | null;
  readonly deletedAtMs: number | null;
}

export interface ModelPackageGroup {
  readonly name: string;
  readonly description: string;
  readonly createdAtMs: number;
}

export function versionFromRow(row: Selectable<VersionsTable>): Version {
  return {
    workspaceId: row.workspace_id,
    id: row.id,
    groupName: row.group_name,
    number: row.number,
    kind: row.kind,
    description: row.description,
    approvalStatus: row.approval_status as ApprovalStatus, // true: only this package writes the column, from the same type
    baseModel: row.base_model,
    training: JSON.parse(row.training),
    sessionId: row.session_id,
    sessionName: row.session_name,
    operationId: row.operation_id,
    step: row.step,
    parent: row.parent,
    sizeBytes: row.size_bytes,
    createdAtMs: row.created_at_ms,
    expiresAtMs: row.expires_at_ms,
    deletedAtMs: row.deleted_at_ms,
  };
}
