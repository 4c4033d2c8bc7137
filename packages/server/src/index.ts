/** The session service: `startServer` over a data directory. */
export type { BlobRef, BlobStore, Manifest, ManifestEntry } from './blobs/blob-store.js';
export type { Clock } from './clock.js';
export type { CreateEngine, CreateEngineOptions } from './engines/engine-host.js';
export type { OpenService, RunningServer, ServerOptions } from './main.js';
export { openService, startServer } from './main.js';
export type { InstalledModel } from './models/model-registry.js';
