/** Saved versions in the registry: their kinds, what people say of them, and what they came from. */
import type { VersionId } from './operation.js';
import type { TrainingSpec } from './session.js';

/** `sampler`: weights to sample from; `merged`: these and the whole folded model; `state`: weights and optimizer, resumable. */
export const versionKinds = ['sampler', 'merged', 'state'] as const;
export type VersionKind = (typeof versionKinds)[number];

/** Spelled as the model package API spells them. */
export const approvalStatuses = ['Approved', 'Rejected', 'PendingManualApproval'] as const;
export type ApprovalStatus = (typeof approvalStatuses)[number];

/** `available` can be used; the others are remembered without their files. */
export const versionStates = ['available', 'expired', 'deleted'] as const;
export type VersionState = (typeof versionStates)[number];

/** What may be said of a version, and how much. */
export const versionLimits = {
  description: 1024,
  note: 1024,
  tags: 50,
  tagKey: 128,
  tagValue: 256,
  metrics: 200,
  metricName: 128,
} as const;

export interface Approval {
  readonly status: ApprovalStatus;
  /** Why; empty where nobody said. */
  readonly note: string;
  /** Null while nobody has decided: the status is `PendingManualApproval` then, for which the model package API says `Approved`. */
  readonly decidedAtMs: number | null;
}

/** A figure that was measured of a version. */
export interface VersionMetric {
  /** Such as `eval/accuracy`. */
  readonly name: string;
  /** Finite. */
  readonly value: number;
  /** How it was measured: data, number of problems, settings. */
  readonly note: string;
  readonly atMs: number;
}

/**
 * What the optimizer steps between a version and its parent (or its base model) were computed from, by the log of operations: the passes
 * that completed and whose gradient a step used, in order.
 */
export interface TrainedData {
  /** Chain of SHA-256 over the stored passes, hexadecimal; equal for the same datums and losses in the same order. Null for none. */
  readonly digest: string | null;
  readonly passes: number;
  readonly datums: number;
  readonly tokens: number;
}

export interface VersionLineage {
  readonly sessionId: string;
  readonly sessionName: string;
  /** The save. */
  readonly operationId: string;
  /** Optimizer steps behind it. */
  readonly step: number;
  /** Version from which its session's weights were loaded; null for those that began at the base model. */
  readonly parent: VersionId | null;
  /** Null for versions of releases that did not note it. */
  readonly data: TrainedData | null;
}

export interface RegisteredVersion {
  /** `group/number`, or what a wire calls it. */
  readonly id: VersionId;
  readonly groupName: string;
  /** From 1, in order of saving; never used twice. */
  readonly number: number;
  readonly kind: VersionKind;
  readonly state: VersionState;
  readonly description: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly approval: Approval;
  /** By name. */
  readonly metrics: readonly VersionMetric[];
  readonly baseModel: string;
  readonly training: TrainingSpec;
  readonly lineage: VersionLineage;
  readonly sizeBytes: number;
  readonly createdAtMs: number;
  /** Of ephemeral versions alone; null for those that stay until somebody deletes them. */
  readonly expiresAtMs: number | null;
  readonly deletedAtMs: number | null;
}

/** A file of a version. */
export interface VersionFile {
  /** Relative, with `/` between its parts. */
  readonly path: string;
  readonly sha256: string;
  readonly sizeBytes: number;
}

/** What a change says anew; what it leaves out stays. */
export interface VersionChange {
  readonly description?: string;
  readonly approval?: {
    /** Without it the note alone is another, and nobody has decided anything. */
    readonly status?: ApprovalStatus;
    readonly note: string;
    /** Why it is approved although results of an evaluation are missing, or say that it fell; kept in the note. */
    readonly withoutResults?: string;
  };
  /** Null takes a tag away. */
  readonly tags?: Readonly<Record<string, string | null>>;
  /** By name; null takes a metric away. */
  readonly metrics?: Readonly<Record<string, { readonly value: number; readonly note: string } | null>>;
  /** Null keeps the version for good. */
  readonly expiresAtMs?: number | null;
}

export interface VersionGroup {
  readonly name: string;
  readonly description: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
  /** Available ones. */
  readonly versions: number;
  /** Number of the newest available one; null where there is none. */
  readonly latest: number | null;
}
