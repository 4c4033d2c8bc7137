/** The SageMaker training-session wire: codecs for servers, clients and remote engines. Free of zod; request schemas of the control plane are in `./server.js`. */

export type { JsonObject } from '../checks.js';
export { parseJson } from '../checks.js';
export type { ArnMap, ArnScope, HubContentRef, PackageRef } from './arn.js';
export {
  arnMap,
  groupNameOf,
  hubContentArn,
  hubContentName,
  modelHubArn,
  modelPackageGroupArn,
  parseHubContentArn,
  parsePackageArn,
  parseVersionId,
  sessionArn,
  sessionNameOf,
  versionId,
} from './arn.js';
export type { ControlRequest } from './control-schemas.js';
export type {
  BillableTokenUsage,
  ControlResponse,
  ControlResponses,
  HubContent,
  HubContentSummary,
  HubDocument,
  ModelPackage,
  ModelPackageExtension,
  ModelPackageGroup,
  ModelPackageSummary,
  TrainingSessionDetail,
  TrainingSessionSummary,
} from './control-types.js';
export { countTokens, datumFromInputs, decodeDatum, encodeDatum, readTokens } from './datum.js';
export {
  adamDefaults,
  defaultLearningRate,
  defaultMaxTokens,
  defaultModelPackageGroup,
  holdSeconds,
  lossDefaults,
  placeholders,
  publicHub,
  samplingDefaults,
  selfHosted,
} from './defaults.js';
export type { EncodedError, ErrorResponse, Plane } from './errors.js';
export { decodeError, encodeError } from './errors.js';
export { completeLoss, lossConfigKeys, lossInputKeys, lossNameAt } from './loss.js';
export type { OperationOutcome, OperationProgress, ResultBody } from './operation-result.js';
export { encodeFailure, encodeUnfinished } from './operation-result.js';
export type { ControlAction, RuntimeRoute, RuntimeRouteName } from './routes.js';
export {
  controlActionOf,
  controlActions,
  controlContentType,
  controlTargetPrefix,
  headers,
  modelFilePath,
  routePath,
  runtimeRoutes,
} from './routes.js';
export type { SampleChoice, SamplingParamsChoice, SamplingRequest, WeightsChoice } from './sampling-operation.js';
export { completeSamplingParams, decodeSamplingRequest, encodeSamplingRequest } from './sampling-operation.js';
export type { SamplingResult } from './sampling-result.js';
export { decodeSamplingResult, encodeSamplingResult } from './sampling-result.js';
export type { CreateTrainingSessionRequest, NewSession, SessionRequest } from './session-spec.js';
export { encodeCreateTrainingSession, sessionRequest, sessionSpec } from './session-spec.js';
export type { TrainingRequest } from './training-operation.js';
export {
  completeAdam,
  decodeClientToken,
  decodeTrainingHeader,
  decodeTrainingRequest,
  encodeTrainingRequest,
  maxSequenceNumber,
} from './training-operation.js';
export type { TrainingResult } from './training-result.js';
export { decodeTrainingResult, encodeTrainingResult } from './training-result.js';
