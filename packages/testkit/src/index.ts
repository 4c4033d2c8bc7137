/** Fixtures, tolerances and fakes; for tests only. */
export type { FakeEngineOptions, FakeMethod, Hold } from './fake-engine.js';
export { FakeEngine } from './fake-engine.js';
