/** What the fake server answers: results that tell what they were asked, and saved versions. */
import type { OperationResults } from '@loopwright/protocol';
import {
  arnMap,
  type ControlResponses,
  type encodeSamplingResult,
  type encodeTrainingResult,
  type SamplingRequest,
  type TrainingRequest,
} from '@loopwright/wires/sagemaker';

const arns = arnMap();

/** @param nextVersion names the version that a save makes */
export function trainingResult(
  { operation, sequenceNumber }: TrainingRequest,
  nextVersion: () => string,
): Parameters<typeof encodeTrainingResult>[0] {
  switch (operation.type) {
    case 'forward':
    case 'forward-backward': {
      // Each output tells its datum's first token, so that order can be checked.
      const outputs = operation.data.map(({ modelInput, targetTokens }) => ({
        logprobs: new Float32Array(targetTokens.data.length).fill(-modelInput[0]!),
        loss: modelInput[0]!,
      }));
      const result: OperationResults['forward'] = {
        outputs,
        lossSum: outputs.reduce((sum, { loss }) => sum + loss, 0),
        metrics: { 'ratio/mean': sequenceNumber },
        trainingTokens: operation.data.reduce((sum, { modelInput }) => sum + modelInput.length, 0),
      };
      return { type: operation.type, result };
    }
    case 'optim-step':
      return { type: operation.type, result: { step: 1, gradNorm: 2, metrics: {} } };
    case 'save-weights':
    case 'save-state':
      return { type: operation.type, result: { version: nextVersion() } };
    case 'load-state':
      return { type: operation.type, result: {} };
    default:
      return operation satisfies never;
  }
}

export function samplingResult(request: SamplingRequest): Parameters<typeof encodeSamplingResult>[0] {
  switch (request.type) {
    case 'sample': {
      const prompt = new Float32Array(request.prompt.length).fill(-0.5);
      return {
        type: 'sample',
        result: {
          sequences: Array.from({ length: request.numSamples }, (_, index) => ({
            tokens: Int32Array.of(request.prompt[0]!, index),
            logprobs: Float32Array.of(-0.25, -0.5),
            stopReason: 'stop' as const,
          })),
          ...(request.promptLogprobs ? { promptLogprobs: prompt } : {}),
          ...(request.topkPromptLogprobs > 0 ? { topkPromptLogprobs: [[], [{ tokenId: 1, logprob: -0.5 }]] } : {}),
          prefillTokens: request.prompt.length,
        },
      };
    }
    case 'compute-logprobs':
      return {
        type: 'compute-logprobs',
        // One prompt gets a wrong number of values, to test that it is noticed.
        result: {
          logprobs: new Float32Array(request.prompt[0] === 13 ? 1 : request.prompt.length).fill(-0.5),
          prefillTokens: request.prompt.length,
        },
      };
    case 'load-weights':
      return { type: 'load-weights', result: {} };
    default:
      return request satisfies never;
  }
}

/** A saved version as the server describes it. */
export function modelPackage(
  version: number,
  kind: 'state' | 'weights',
  extension?: ControlResponses['DescribeModelPackage']['Loopwright'],
): ControlResponses['DescribeModelPackage'] {
  return {
    ModelPackageArn: arns.toArn(`sagemaker-default/${version}`),
    ModelPackageName: 'sagemaker-default',
    ModelPackageGroupName: 'sagemaker-default',
    ModelPackageVersion: version,
    CreationTime: 1_790_000_000 + version,
    ModelPackageStatus: 'Completed',
    ModelPackageDescription: `version ${version}`,
    ModelPackageStatusDetails: { ValidationStatuses: [] },
    ModelApprovalStatus: 'Approved',
    InferenceSpecification: {
      Containers: [
        {
          IsCheckpoint: kind === 'state',
          BaseModel: { HubContentName: 'tiny', HubContentVersion: '1.0.0' },
          ModelDataSource: { S3DataSource: { S3Uri: 's3://a/b/', S3DataType: 'S3Prefix', CompressionType: 'None' } },
        },
      ],
    },
    ...(extension === undefined ? {} : { Loopwright: extension }),
  };
}
