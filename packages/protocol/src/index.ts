/** The words that client, wires, server and engine share. */
export type { Datum } from './datum.js';
export { diskFull, isNoSpace } from './disk-full.js';
export type { Complaint, ErrorCode, ErrorDetails, LoopwrightErrorOptions, WireError } from './errors.js';
export { asLoopwrightError, complaint, errorCatalogue, LoopwrightError } from './errors.js';
export type { DatumFor, LossConfig, LossInputName, LossInputsFor, LossName, LossSpec, NumberArray } from './losses.js';
export { losses, lossInputs, lossNames } from './losses.js';
export { type ModelCard, type PinnedName, pinnedName, splitPinned } from './model.js';
export type {
  ComputeLogprobsResult,
  DatumOutput,
  Operation,
  OperationResults,
  OperationStatus,
  OperationType,
  OptimStepResult,
  PassOperation,
  PassResult,
  SampledSequence,
  SampleResult,
  SamplingOperation,
  TokenLogprob,
  TrainingOperation,
  VersionId,
  WeightsRef,
} from './operation.js';
export { operationStatuses, trainingOperationTypes } from './operation.js';
export type { AdamParams } from './optimizer.js';
export { adamRanges } from './optimizer.js';
export { requireReason } from './reason.js';
export type {
  Approval,
  ApprovalStatus,
  RegisteredVersion,
  TrainedData,
  VersionChange,
  VersionFile,
  VersionGroup,
  VersionKind,
  VersionLineage,
  VersionMetric,
  VersionState,
} from './registry.js';
export { approvalStatuses, versionKinds, versionLimits, versionStates } from './registry.js';
export type { SamplingParams, StopReason } from './sampling.js';
export { samplingRanges } from './sampling.js';
export type {
  LoraSpec,
  SamplerPath,
  SessionSpec,
  SessionStatus,
  SessionTraining,
  TargetModule,
  TokenUsage,
  TrainingSpec,
} from './session.js';
export {
  activeStatuses,
  defaultTargetModules,
  samplerPaths,
  sessionStatuses,
  targetModules,
  type UsageGrouping,
  usageGroupings,
} from './session.js';
export type { FloatTensor, IdTensor, TensorShape } from './tensor.js';
export { floatTensor, idTensor } from './tensor.js';
export type { ApprovalGap, VersionResult } from './version-results.js';
export { approvalGaps, otherComparison, versionResults } from './version-results.js';
