/** The rows of the database, as Kysely sees them. Times are milliseconds since the epoch, JSON columns hold what their comment says. */

/** A training session. */
export interface SessionsTable {
  workspace_id: string;
  id: string;
  name: string;
  status: string;
  /** SessionSpec. */
  spec: string;
  /** What the wire wants echoed (role, tags, output location, …); opaque to us. */
  echo: string;
  /** WirePolicy: what happens at gaps and failed passes. */
  policy: string;
  /** ExecutionPlan, from the first creation in an engine on. */
  plan: string | null;
  group_name: string;
  /** WireError. */
  error: string | null;
  /** Highest training sequence number received; 0 before the first. */
  last_sequence_number: number;
  /** The training sequence number whose turn it is. */
  next_sequence_number: number;
  /** 1 after a failed forwardBackward, until the next optimStep. */
  gradient_incomplete: number;
  /** Optimizer steps taken. */
  step: number;
  /** Version that a sampling request without a version reads; null is the base model. */
  sampler_version: string | null;
  /** The one training client that drives the session, where it names itself. */
  trainer: string | null;
  created_at_ms: number;
  modified_at_ms: number;
  active_at_ms: number;
  ended_at_ms: number | null;
}

/** An accepted operation. Its payload and result are blobs, or small payloads. */
export interface OperationsTable {
  workspace_id: string;
  id: string;
  session_id: string;
  kind: 'training' | 'sampling';
  type: string;
  /** Training operations only. */
  sequence_number: number | null;
  client_token: string | null;
  /** SHA-256 of the operation as it was submitted, before anything was resolved. */
  payload_hash: string;
  payload_blob: string;
  result_blob: string | null;
  /** ResolvedInputs: what acceptance drew or looked up. */
  resolved: string;
  /** Version that the operation reads; keeps that version's files. */
  reads_version: string | null;
  status: string;
  /** WireError. */
  error: string | null;
  created_at_ms: number;
  started_at_ms: number | null;
  ended_at_ms: number | null;
  /** How long the engine worked on what came of it; null where none did, and in rows of before it was measured. */
  engine_ms: number | null;
}

/** Sequence numbers that a refused submission used up. */
export interface SpentNumbersTable {
  workspace_id: string;
  session_id: string;
  sequence_number: number;
}

export interface ModelPackageGroupsTable {
  workspace_id: string;
  name: string;
  description: string;
  next_number: number;
  created_at_ms: number;
  /** JSON object of texts. */
  tags: string;
}

/** A saved version; immutable but for what people say of it and its end. The row stays when the files go, so that lineage stays whole. */
export interface VersionsTable {
  workspace_id: string;
  /** `group/number`. */
  id: string;
  group_name: string;
  number: number;
  kind: 'sampler' | 'state' | 'merged';
  description: string;
  approval_status: string;
  base_model: string;
  /** TrainingSpec of the session that saved it. */
  training: string;
  session_id: string;
  session_name: string;
  operation_id: string;
  /** Optimizer steps behind it. */
  step: number;
  /** Version that the session's weights came from: its last load, or null. */
  parent: string | null;
  size_bytes: number;
  created_at_ms: number;
  /** Only ephemeral versions have one. */
  expires_at_ms: number | null;
  /** Set when deleted; files may stay until nothing reads them. */
  deleted_at_ms: number | null;
  /** JSON object of texts. */
  tags: string;
  approval_note: string;
  /** Null while nobody has decided. */
  approval_at_ms: number | null;
  /** NotedData of `registry/trained-data.ts`; null in rows of before it was noted. */
  data: string | null;
  /** When the files of a deleted or expired version went. */
  collected_at_ms: number | null;
}

/** Figures that were measured of a version. */
export interface VersionMetricsTable {
  workspace_id: string;
  version_id: string;
  name: string;
  value: number;
  note: string;
  at_ms: number;
}

/** Files of a version. */
export interface VersionFilesTable {
  workspace_id: string;
  version_id: string;
  path: string;
  blob: string;
  size_bytes: number;
}

/** One row per operation that cost something; written in the transaction of its result. */
export interface LedgerTable {
  workspace_id: string;
  operation_id: string;
  session_id: string;
  session_name: string;
  base_model: string;
  operation_type: string;
  prefill_tokens: number;
  sample_tokens: number;
  training_tokens: number;
  at_ms: number;
}

/** Inputs and results of operations that are too small for a file of their own. */
export interface SmallPayloadsTable {
  workspace_id: string;
  /** SHA-256 of the bytes. */
  hash: string;
  bytes: Uint8Array;
}

/** Blobs and small payloads that lost a reference: candidates for deletion, until the collector has looked at them. */
export interface GarbageTable {
  workspace_id: string;
  blob: string;
}

/** A session as it was in the engine after an operation, in a directory of its own outside the database. */
export interface SnapshotsTable {
  workspace_id: string;
  id: string;
  session_id: string;
  /** The training operations below this number had their turn. */
  next_sequence_number: number;
  /** ExecutionPlan of the session. */
  plan: string;
  size_bytes: number;
  created_at_ms: number;
}

/** A session of a Tinker client: the models and samplers that one program made. */
export interface TinkerSessionsTable {
  workspace_id: string;
  id: string;
  /** What the client told of itself: tags, metadata, project, name to show. */
  facts: string;
  created_at_ms: number;
  /** When its client was last heard of. */
  heartbeat_at_ms: number;
  /** Why it ended, as its client or the server says; null while it lives. */
  finish: string | null;
}

/** What a Tinker client samples from: a base model or a saved version, fixed when the sampler is made. */
export interface TinkerSamplersTable {
  workspace_id: string;
  id: string;
  session_id: string;
  /** Counted by the client; null for those that came of a save. */
  number: number | null;
  base_model: string;
  /** As the client named the version. */
  model_path: string | null;
  version_id: string | null;
  /** The save that made it, whose version it reads. */
  operation_id: string | null;
  /** Copies of the client that took a number of their own. */
  clones: number;
  created_at_ms: number;
}

/** The name under which a Tinker client saved a version; the version is that of the operation. */
export interface TinkerSavesTable {
  workspace_id: string;
  operation_id: string;
  model_id: string;
  kind: string;
  name: string;
  is_public: number;
  user_metadata: string;
  created_at_ms: number;
}

export interface Tables {
  sessions: SessionsTable;
  operations: OperationsTable;
  spent_numbers: SpentNumbersTable;
  model_package_groups: ModelPackageGroupsTable;
  versions: VersionsTable;
  version_files: VersionFilesTable;
  version_metrics: VersionMetricsTable;
  ledger: LedgerTable;
  garbage: GarbageTable;
  small_payloads: SmallPayloadsTable;
  snapshots: SnapshotsTable;
  tinker_sessions: TinkerSessionsTable;
  tinker_samplers: TinkerSamplersTable;
  tinker_saves: TinkerSavesTable;
}
