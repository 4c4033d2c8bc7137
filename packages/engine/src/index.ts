/** The Engine interface. The embedded engine is behind `@loopwright/engine/local`, so that this import loads no native code. */
export type {
  CallOptions,
  Engine,
  ExecutionPlan,
  LogprobsRequest,
  SampleRequest,
  SamplerWeights,
  SavedFiles,
  SessionCounters,
  SessionOptions,
} from './engine.js';
