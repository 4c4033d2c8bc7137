/** The schema, one step per release that changed it. A step that was released is never edited; the next change is a new step. */

/** Step n takes a database from version n to n + 1. */
export const migrations: readonly string[] = [
  `
  CREATE TABLE sessions (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL,
    status TEXT NOT NULL,
    spec TEXT NOT NULL,
    echo TEXT NOT NULL,
    policy TEXT NOT NULL,
    plan TEXT,
    group_name TEXT NOT NULL,
    error TEXT,
    last_sequence_number INTEGER NOT NULL,
    next_sequence_number INTEGER NOT NULL,
    gradient_incomplete INTEGER NOT NULL,
    step INTEGER NOT NULL,
    sampler_version TEXT,
    trainer TEXT,
    created_at_ms INTEGER NOT NULL,
    modified_at_ms INTEGER NOT NULL,
    active_at_ms INTEGER NOT NULL,
    ended_at_ms INTEGER,
    UNIQUE (workspace_id, name)
  );
  CREATE INDEX sessions_by_time ON sessions (workspace_id, created_at_ms);

  CREATE TABLE operations (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    kind TEXT NOT NULL,
    type TEXT NOT NULL,
    sequence_number INTEGER,
    client_token TEXT,
    payload_hash TEXT NOT NULL,
    payload_blob TEXT NOT NULL,
    result_blob TEXT,
    resolved TEXT NOT NULL,
    reads_version TEXT,
    status TEXT NOT NULL,
    error TEXT,
    created_at_ms INTEGER NOT NULL,
    started_at_ms INTEGER,
    ended_at_ms INTEGER,
    UNIQUE (session_id, sequence_number),
    UNIQUE (session_id, client_token)
  );
  CREATE INDEX operations_open ON operations (session_id, ended_at_ms);
  CREATE INDEX operations_by_version ON operations (reads_version) WHERE reads_version IS NOT NULL;
  CREATE INDEX operations_by_payload ON operations (payload_blob);
  CREATE INDEX operations_by_result ON operations (result_blob) WHERE result_blob IS NOT NULL;

  CREATE TABLE spent_numbers (
    workspace_id TEXT NOT NULL,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    sequence_number INTEGER NOT NULL,
    PRIMARY KEY (session_id, sequence_number)
  );

  CREATE TABLE model_package_groups (
    workspace_id TEXT NOT NULL,
    name TEXT NOT NULL,
    description TEXT NOT NULL,
    next_number INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, name)
  );

  CREATE TABLE versions (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL,
    group_name TEXT NOT NULL,
    number INTEGER NOT NULL,
    kind TEXT NOT NULL,
    description TEXT NOT NULL,
    approval_status TEXT NOT NULL,
    base_model TEXT NOT NULL,
    training TEXT NOT NULL,
    session_id TEXT NOT NULL,
    session_name TEXT NOT NULL,
    operation_id TEXT NOT NULL,
    step INTEGER NOT NULL,
    parent TEXT,
    size_bytes INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER,
    deleted_at_ms INTEGER,
    PRIMARY KEY (workspace_id, id)
  );
  CREATE INDEX versions_by_group ON versions (workspace_id, group_name, number);
  CREATE INDEX versions_by_end ON versions (expires_at_ms) WHERE expires_at_ms IS NOT NULL;

  CREATE TABLE version_files (
    workspace_id TEXT NOT NULL,
    version_id TEXT NOT NULL,
    path TEXT NOT NULL,
    blob TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, version_id, path)
  );
  CREATE INDEX version_files_by_blob ON version_files (blob);

  CREATE TABLE ledger (
    workspace_id TEXT NOT NULL,
    operation_id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL,
    session_name TEXT NOT NULL,
    base_model TEXT NOT NULL,
    operation_type TEXT NOT NULL,
    prefill_tokens INTEGER NOT NULL,
    sample_tokens INTEGER NOT NULL,
    training_tokens INTEGER NOT NULL,
    at_ms INTEGER NOT NULL
  );
  CREATE INDEX ledger_by_session ON ledger (session_id);

  CREATE TABLE garbage (
    workspace_id TEXT NOT NULL,
    blob TEXT NOT NULL,
    PRIMARY KEY (workspace_id, blob)
  );
  `,
  `
  ALTER TABLE operations ADD COLUMN engine_ms REAL;

  CREATE TABLE snapshots (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id),
    next_sequence_number INTEGER NOT NULL,
    plan TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL
  );
  CREATE INDEX snapshots_by_session ON snapshots (session_id, next_sequence_number);
  `,
  `
  CREATE TABLE tinker_sessions (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL PRIMARY KEY,
    facts TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    heartbeat_at_ms INTEGER NOT NULL,
    finish TEXT
  );
  CREATE INDEX tinker_sessions_open ON tinker_sessions (heartbeat_at_ms) WHERE finish IS NULL;

  CREATE TABLE tinker_samplers (
    workspace_id TEXT NOT NULL,
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL,
    number INTEGER,
    base_model TEXT NOT NULL,
    model_path TEXT,
    version_id TEXT,
    operation_id TEXT UNIQUE,
    clones INTEGER NOT NULL,
    created_at_ms INTEGER NOT NULL,
    UNIQUE (session_id, number)
  );

  CREATE TABLE tinker_saves (
    workspace_id TEXT NOT NULL,
    operation_id TEXT NOT NULL PRIMARY KEY,
    model_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    is_public INTEGER NOT NULL,
    user_metadata TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL
  );
  CREATE INDEX tinker_saves_by_name ON tinker_saves (model_id, kind, name);
  CREATE INDEX versions_by_operation ON versions (operation_id);
  `,
  `
  ALTER TABLE model_package_groups ADD COLUMN tags TEXT NOT NULL DEFAULT '{}';
  ALTER TABLE versions ADD COLUMN tags TEXT NOT NULL DEFAULT '{}';
  ALTER TABLE versions ADD COLUMN approval_note TEXT NOT NULL DEFAULT '';
  ALTER TABLE versions ADD COLUMN approval_at_ms INTEGER;
  ALTER TABLE versions ADD COLUMN data TEXT;
  ALTER TABLE versions ADD COLUMN collected_at_ms INTEGER;
  CREATE INDEX versions_to_collect ON versions (id)
    WHERE collected_at_ms IS NULL AND (deleted_at_ms IS NOT NULL OR expires_at_ms IS NOT NULL);
  CREATE TABLE version_metrics (
    workspace_id TEXT NOT NULL,
    version_id TEXT NOT NULL,
    name TEXT NOT NULL,
    value REAL NOT NULL,
    note TEXT NOT NULL,
    at_ms INTEGER NOT NULL,
    PRIMARY KEY (workspace_id, version_id, name)
  );
  `,
  `
  CREATE TABLE small_payloads (
    workspace_id TEXT NOT NULL,
    hash TEXT NOT NULL,
    bytes BLOB NOT NULL,
    PRIMARY KEY (workspace_id, hash)
  );
  `,
];

/** The version that this release writes and reads. */
export const schemaVersion: number = migrations.length;
