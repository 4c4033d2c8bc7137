/** The client of a Loopwright server: service, training and sampling clients, and their futures. Runs in browsers. */

export type {
  GroupChange,
  UsageLine,
  UsageQuery,
  VersionDetail,
  VersionPart,
  VersionQuery,
} from '@loopwright/wires/loopwright';
export { mergePassOutputs } from './batches.js';
export type { Clock } from './clock.js';
export type { CustomDatum, CustomLoss, CustomLossValue, CustomPassOutput } from './custom-loss.js';
export type { LossConfigFor } from './losses.js';
export type { ModelPackageFilter, ModelPackageInfo, ModelPackageKind } from './model-packages.js';
export type { OperationState } from './operation-future.js';
export { OperationFuture } from './operation-future.js';
export type { MetricOptions, VersionFilter, VersionSummary } from './registry-client.js';
export { RegistryClient } from './registry-client.js';
export type { SampledTokens, SampleOptions, SampleOutput, Tokens } from './sampling-client.js';
export { SamplingClient } from './sampling-client.js';
export type {
  FromStateOptions,
  LoraTrainingOptions,
  SamplingClientOptions,
  TrainingOptions,
} from './service-client.js';
export { ServiceClient } from './service-client.js';
export type { DeleteOptions, LoraOptions, SessionFilter, SessionSummary } from './sessions.js';
export type {
  ForwardBackwardOutput,
  OptimStepOptions,
  OptimStepOutput,
  SavedVersion,
  SaveOptions,
  SaveWeightsOptions,
} from './training-calls.js';
export { TrainingClient } from './training-client.js';
export type { CallOptions, ConnectOptions } from './transport.js';
