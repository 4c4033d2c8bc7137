/** The session service: `startServer` over a data directory. */
export type { BlobRef, BlobStore, Manifest, ManifestEntry } from './blobs/blob-store.js';
export type { Clock } from './clock.js';
export type { CreateEngine, CreateEngineOptions } from './engines/engine-host.js';
export type { LimitName, Limits } from './limits/limits.js';
export { limitLines, limitTable } from './limits/limits.js';
export type { OpenService, RunningServer, ServerOptions } from './main.js';
export { openService, startServer } from './main.js';
export type { InstalledModel, ModelCache } from './models/model-registry.js';
export type { ComparedOperation, RunComparison, RunLocation } from './replay/compare-runs.js';
export { compareRuns } from './replay/compare-runs.js';
export type { FieldDifference, ValueDifference } from './replay/differences.js';
export type { Finding, OperationFindings, OperationRef } from './replay/findings.js';
export type { ReplayEngine, ReplayEvent, ReplayOptions, ReplayPlan, ReplayReport } from './replay/replay.js';
export { replay } from './replay/replay.js';
export type { ReplayCounts, ReplayedOperation } from './replay/replay-session.js';
export type { SavedVersion } from './replay/saved-version.js';
export { openSavedVersion } from './replay/saved-version.js';
export type { ArrayDifference, WeightsDifference } from './replay/weights-difference.js';
