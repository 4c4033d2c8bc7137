/** The one route table of this wire: runtime routes by method and path, control-plane actions by `X-Amz-Target`. */

export interface RuntimeRoute {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** `:name` is the session, `:operationId` the operation. */
  readonly path: string;
  readonly action: string;
}

const operations = '/v1/training-sessions/:name/operations';
const samplings = '/v1/training-sessions/:name/sampling-operations';

/** The two DELETE routes are ours: they cancel, and answer like the result route of the same path. */
export const runtimeRoutes = {
  executeTraining: { method: 'POST', path: operations, action: 'ExecuteTrainingOperation' },
  trainingResult: { method: 'GET', path: `${operations}/:operationId`, action: 'GetTrainingOperationResult' },
  cancelTraining: { method: 'DELETE', path: `${operations}/:operationId`, action: 'CancelTrainingOperation' },
  executeSampling: { method: 'POST', path: samplings, action: 'ExecuteSamplingOperation' },
  samplingResult: { method: 'GET', path: `${samplings}/:operationId`, action: 'GetSamplingOperationResult' },
  cancelSampling: { method: 'DELETE', path: `${samplings}/:operationId`, action: 'CancelSamplingOperation' },
  chat: { method: 'POST', path: '/training-sessions/:name/sample', action: 'SampleTrainingSession' },
  chatStream: {
    method: 'POST',
    path: '/training-sessions/:name/sample-with-response-stream',
    action: 'SampleTrainingSessionWithResponseStream',
  },
} as const satisfies Record<string, RuntimeRoute>;

export type RuntimeRouteName = keyof typeof runtimeRoutes;

/** Fills in a path. */
export function routePath(
  route: RuntimeRouteName,
  params: { readonly name: string; readonly operationId?: string },
): string {
  return runtimeRoutes[route].path
    .replace(':name', encodeURIComponent(params.name))
    .replace(':operationId', encodeURIComponent(params.operationId ?? ''));
}

/** Sent to `POST /` with `X-Amz-Target: SageMaker.<action>`. */
export const controlActions = [
  'CreateTrainingSession',
  'DescribeTrainingSession',
  'ListTrainingSessions',
  'StopTrainingSession',
  'DeleteTrainingSession',
  'ListHubContents',
  'DescribeHubContent',
  'CreateModelPackageGroup',
  'DescribeModelPackageGroup',
  'ListModelPackageGroups',
  'ListModelPackages',
  'DescribeModelPackage',
  'UpdateModelPackage',
  'DeleteModelPackage',
  'AddTags',
  'ListTags',
  'DeleteTags',
] as const;
export type ControlAction = (typeof controlActions)[number];

export const controlTargetPrefix = 'SageMaker.';
export const controlContentType = 'application/x-amz-json-1.1';

/** The action of an `X-Amz-Target` header; undefined when it is none of ours. */
export function controlActionOf(target: string | null | undefined): ControlAction | undefined {
  if (target?.startsWith(controlTargetPrefix) !== true) return undefined;
  return controlActions.find(
    (action) => target.length === controlTargetPrefix.length + action.length && target.endsWith(action),
  );
}

/** Files of a model's tokenizer, `GET /<org>/<name>/resolve/main/<file>`. */
export function modelFilePath(modelId: string, file: string): string {
  return `/${modelId.split('/').map(encodeURIComponent).join('/')}/resolve/main/${file}`;
}

/** Headers of ours. */
export const headers = {
  /** On result requests and sampling submissions: hold the answer up to this many seconds (50 at most); a submission's then has the result too. */
  waitSeconds: 'x-loopwright-wait-seconds',
  /** On training submissions: id of the client that drives the session; another one is refused with `session_has_trainer`. */
  trainer: 'x-loopwright-trainer',
  /** On sampling submissions: a token of the caller's (as `clientToken` of training ones), so that a repetition finds the first. */
  samplingToken: 'x-loopwright-client-token',
  /** On chat requests: ARN of the saved version that is to answer. */
  modelPackage: 'x-amzn-sagemaker-model-package',
  errorType: 'x-amzn-errortype',
  requestId: 'x-amzn-requestid',
} as const;
