/** The embedded engine: models on onnxruntime-node, in this process or (as servers use it) in a child process. */
export { LocalEngine, type LocalEngineOptions } from './local-engine.js';
export { sessionBytes } from './memory.js';
export { requireDevice } from './ort/device.js';
export { requirePrecision } from './ort/int8-kernels.js';
export { type PredictedModel, type PredictRunOptions, predictModel, type RunSize } from './predict-run.js';
export { probeRuntime, type RuntimeProbe } from './probe.js';
export { type SpawnOptions, spawnEngine } from './process/spawn.js';
export type { SliceEvent } from './slices.js';
