/** The Engine interface. The embedded engine is behind `@loopwright/engine/local`, so that this import loads no native code. */
export { type Device, deviceFacts, devices, devicesOn, requireDeviceName } from './devices.js';
export type {
  CallOptions,
  DrawnToken,
  Engine,
  ExecutionPlan,
  LogprobsRequest,
  OnToken,
  RecomputePlan,
  SampleRequest,
  SamplerWeights,
  SavedFiles,
  SessionCounters,
  SessionOptions,
  SessionSnapshot,
} from './engine.js';
export { type AdapterWeights, adapterBaseModel, readAdapter, writeAdapter } from './formats/adapter.js';
export { systemFreeBytes, writeFileAtomically, writeJsonAtomically } from './formats/atomic-file.js';
export { type GgufType, ggufTypes } from './formats/gguf/config-metadata.js';
export { type WriteGgufOptions, type WrittenGguf, writeGguf } from './formats/gguf/write-gguf.js';
export { mergeAdapter, type WriteModelOptions, writeModelDirectory } from './formats/merged-model.js';
export type { ModelFiles, ModelSource, SourceFile } from './formats/model-source.js';
export { loadModelTokenizer, readTokenizerSources } from './formats/model-tokenizer.js';
export { openModel, openModelFiles } from './formats/open-model.js';
export type { NamedTensor, TensorToWrite } from './formats/safetensors.js';
export { readSafetensors, writeSafetensors } from './formats/safetensors.js';
export { readSnapshotInfo } from './formats/session-snapshot.js';
export { describeHost, type HostFacts, hostFacts, requireSupportedHost } from './local/ort/host.js';
export { defaultMaxMemoryBytes, machineMemoryBytes } from './machine-memory.js';
export { nudgeThreadPool } from './nudge-thread-pool.js';
export {
  type PrecisionEffect,
  requirePrecisionName,
  type SamplerPrecision,
  samplerPrecisions,
} from './precision.js';
export { defaultSwapAfterMs, type SwapEvent } from './swap.js';
export { defaultThreads } from './threads.js';
