/** For programs on Node: data sets of files, metrics as JSON lines, the live view of a terminal, sandboxes in processes of this machine, fixture databases. */
export type { OpenDatasetOptions } from './data/files/open-dataset.js';
export { openDataset } from './data/files/open-dataset.js';
export { readPassRates } from './data/files/pass-rates.js';
export type { CheckGateOptions, GateFile, GateOverride } from './grader-gate/gate-file.js';
export { checkGate, gateFileName, readGate, writeGate } from './grader-gate/gate-file.js';
export type { SqlDatabasesOptions, SqlRows, SqlValue } from './graders/sql/databases.js';
export { openSqlDatabases, SqlDatabases } from './graders/sql/databases.js';
export type { SameRowsOptions } from './graders/sql/same-rows.js';
export type { SqlResultOptions } from './graders/sql/sql-result.js';
export { sqlResult } from './graders/sql/sql-result.js';
export type { MetricsLog, ReportedStep } from './reporting/metrics-log.js';
export { openMetricsLog } from './reporting/metrics-log.js';
export type { ShownStep, TerminalView, TerminalViewOptions } from './reporting/terminal-view.js';
export { createTerminalView } from './reporting/terminal-view.js';
export { createJavaScriptSandbox } from './sandbox/javascript-sandbox.js';
export type { ProcessSandboxOptions } from './sandbox/process-sandbox.js';
export { createPythonSandbox } from './sandbox/python-sandbox.js';
