/** Requests of both planes that must be refused, each with the member that is wrong. */
import { LoopwrightError } from '@loopwright/protocol';
import { expect, test } from 'vitest';
import type { JsonObject } from '../checks.js';
import { arnMap, hubContentArn, modelPackageGroupArn } from './arn.js';
import { decodeControlRequest } from './control-schemas.js';
import { placeholders } from './defaults.js';
import type { ControlAction } from './routes.js';
import { decodeSamplingRequest } from './sampling-operation.js';
import { decodeTrainingHeader, decodeTrainingRequest } from './training-operation.js';

const arns = arnMap();
const group = modelPackageGroupArn('g');
const version = arns.toArn('g/1');

function fieldOf(run: () => unknown): unknown {
  try {
    run();
  } catch (error) {
    if (!LoopwrightError.isInstance(error)) throw error;
    expect(error.code).toBe('invalid_argument');
    expect(error.message).toContain(String(error.details.field));
    const { expected, got, remedy } = error.details;
    for (const part of [expected, got, remedy]) expect(part, error.message).toMatch(/./);
    return error.details.field;
  }
  throw new Error('nothing was refused');
}

const adam = (params: JsonObject): JsonObject => ({
  sequenceNumber: 1,
  operationConfig: { optimizerStep: { adamParamsConfig: { learningRate: 1e-4, ...params } } },
});
const config = 'operationConfig';
const adamField = `${config}.optimizerStep.adamParamsConfig`;

test.each<[string, JsonObject, string]>([
  ['number 0', { ...adam({}), sequenceNumber: 0 }, 'sequenceNumber'],
  ['number 2^31', { ...adam({}), sequenceNumber: 2 ** 31 }, 'sequenceNumber'],
  ['no number', { operationConfig: adam({}).operationConfig }, 'sequenceNumber'],
  ['a token with a space', { ...adam({}), clientToken: 'with space' }, 'clientToken'],
  ['a token of 129', { ...adam({}), clientToken: 'a'.repeat(129) }, 'clientToken'],
  ['no config', { sequenceNumber: 1 }, config],
  ['an empty union', { sequenceNumber: 1, operationConfig: {} }, config],
  ['two members', { sequenceNumber: 1, operationConfig: { saveState: {}, saveWeights: {} } }, config],
  ['an unknown member', { sequenceNumber: 1, operationConfig: { explode: {} } }, config],
  ['no learning rate', adam({ learningRate: undefined }), `${adamField}.learningRate`],
  ['learning rate 0', adam({ learningRate: 0 }), `${adamField}.learningRate`],
  ['learning rate 0.02', adam({ learningRate: 0.02 }), `${adamField}.learningRate`],
  ['beta1 1', adam({ beta1: 1 }), `${adamField}.beta1`],
  ['eps 0', adam({ eps: 0 }), `${adamField}.eps`],
  ['clip 101', adam({ gradClipNorm: 101 }), `${adamField}.gradClipNorm`],
  ['LoRA+ 0.5', adam({ loraPlusLrRatio: 0.5 }), `${adamField}.loraPlusLrRatio`],
  ['a misspelt parameter', adam({ gradientClipNorm: 1 }), `${adamField}.gradientClipNorm`],
  [
    'a description of 1025',
    { sequenceNumber: 1, operationConfig: { saveState: { description: 'd'.repeat(1025) } } },
    `${config}.saveState.description`,
  ],
  [
    'a load of a group',
    { sequenceNumber: 1, operationConfig: { loadState: { modelPackageArn: group, loadOptimizer: true } } },
    `${config}.loadState.modelPackageArn`,
  ],
  [
    'a load without a choice',
    { sequenceNumber: 1, operationConfig: { loadState: { modelPackageArn: version } } },
    `${config}.loadState.loadOptimizer`,
  ],
])('training: %s is refused', (_what, body, field) => {
  expect(fieldOf(() => decodeTrainingRequest(body, { arns }))).toBe(field);
});

test('the header of a request can be read when its operation is wrong', () => {
  expect(decodeTrainingHeader({ sequenceNumber: 4, clientToken: 'a-1', operationConfig: {} })).toEqual({
    sequenceNumber: 4,
    clientToken: 'a-1',
  });
});

const prompt = { chunks: [{ type: 'encoded_text', tokens: [1, 2] }] };
const sample = (over: JsonObject = {}, params: JsonObject = {}): JsonObject => ({
  operationConfig: { sample: { prompt, numSamples: 1, samplingParams: { maxTokens: 8, ...params }, ...over } },
});

test.each<[string, JsonObject, string]>([
  ['an empty union', { operationConfig: {} }, config],
  ['no samples', sample({ numSamples: 0 }), `${config}.sample.numSamples`],
  ['1001 samples', sample({ numSamples: 1001 }), `${config}.sample.numSamples`],
  ['no tokens to make', sample({}, { maxTokens: 0 }), `${config}.sample.samplingParams.maxTokens`],
  ['131073 tokens', sample({}, { maxTokens: 131_073 }), `${config}.sample.samplingParams.maxTokens`],
  ['temperature 2.1', sample({}, { temperature: 2.1 }), `${config}.sample.samplingParams.temperature`],
  ['topP 1.1', sample({}, { topP: 1.1 }), `${config}.sample.samplingParams.topP`],
  ['topK −2', sample({}, { topK: -2 }), `${config}.sample.samplingParams.topK`],
  ['an empty stop', sample({}, { stop: [''] }), `${config}.sample.samplingParams.stop[0]`],
  ['a misspelt parameter', sample({}, { top_p: 1 }), `${config}.sample.samplingParams.top_p`],
  ['no params', sample({ samplingParams: undefined }), `${config}.sample.samplingParams`],
  ['no prompt', sample({ prompt: undefined }), `${config}.sample.prompt`],
  ['no chunks', sample({ prompt: { chunks: [] } }), `${config}.sample.prompt.chunks`],
  ['`latest` as ARN', sample({ modelPackageArn: 'latest' }), `${config}.sample.modelPackageArn`],
  [
    'a load without ARN',
    { operationConfig: { loadWeightsForSampling: {} } },
    `${config}.loadWeightsForSampling.modelPackageArn`,
  ],
])('sampling: %s is refused', (_what, body, field) => {
  expect(fieldOf(() => decodeSamplingRequest(body, { arns }))).toBe(field);
});

test('fewer than 512 new tokens are taken, an extension of ours', () => {
  expect(decodeSamplingRequest(sample(), { arns })).toMatchObject({ params: { maxTokens: 8 } });
});

const creation: JsonObject = {
  TrainingSessionName: 'a-1',
  RoleArn: placeholders.RoleArn,
  LoraConfig: { Rank: 8, Alpha: 16 },
  ModelConfig: { BaseModelArn: hubContentArn({ name: 'loopwright-tiny' }) },
  OutputConfig: placeholders.OutputConfig,
};

test.each<[string, ControlAction, JsonObject, string]>([
  ['a name of 64', 'CreateTrainingSession', { TrainingSessionName: 'a'.repeat(64) }, 'TrainingSessionName'],
  ['an underscore', 'CreateTrainingSession', { TrainingSessionName: 'under_score' }, 'TrainingSessionName'],
  ['a leading hyphen', 'CreateTrainingSession', { TrainingSessionName: '-a' }, 'TrainingSessionName'],
  ['no LoRA', 'CreateTrainingSession', { LoraConfig: undefined }, 'LoraConfig'],
  ['rank 0', 'CreateTrainingSession', { LoraConfig: { Rank: 0, Alpha: 1 } }, 'LoraConfig.Rank'],
  ['rank 257', 'CreateTrainingSession', { LoraConfig: { Rank: 257, Alpha: 1 } }, 'LoraConfig.Rank'],
  ['alpha 0', 'CreateTrainingSession', { LoraConfig: { Rank: 1, Alpha: 0 } }, 'LoraConfig.Alpha'],
  ['a short account', 'CreateTrainingSession', { RoleArn: 'arn:aws:iam::12:role/short-account' }, 'RoleArn'],
  ['no role', 'CreateTrainingSession', { RoleArn: undefined }, 'RoleArn'],
  ['no ARN as model', 'CreateTrainingSession', { ModelConfig: { BaseModelArn: 'x' } }, 'ModelConfig.BaseModelArn'],
  ['no output', 'CreateTrainingSession', { OutputConfig: undefined }, 'OutputConfig'],
  [
    'an ftp path',
    'CreateTrainingSession',
    { OutputConfig: { S3Location: { Path: 'ftp://x/y' } } },
    'OutputConfig.S3Location.Path',
  ],
  [
    'a key alias',
    'CreateTrainingSession',
    { OutputConfig: { S3Location: { Path: 's3://x/y', KmsKeyArn: 'alias/x' } } },
    'OutputConfig.S3Location.KmsKeyArn',
  ],
  ['a group by name', 'CreateTrainingSession', { ModelPackageGroupArn: 'my-group' }, 'ModelPackageGroupArn'],
  [
    'no subnets',
    'CreateTrainingSession',
    { VpcConfig: { SecurityGroupIds: ['sg-1'], Subnets: [] } },
    'VpcConfig.Subnets',
  ],
  ['51 tags', 'CreateTrainingSession', { Tags: new Array(51).fill({ Key: 'k', Value: 'v' }) }, 'Tags'],
  ['an unknown extension', 'CreateTrainingSession', { Loopwright: { Rank: 1 } }, 'Loopwright.Rank'],
  ['an unknown path', 'CreateTrainingSession', { Loopwright: { SamplerPath: 'both' } }, 'Loopwright.SamplerPath'],
  [
    'an unknown module',
    'CreateTrainingSession',
    { Loopwright: { TargetModules: ['c_attn'] } },
    'Loopwright.TargetModules[0]',
  ],
  ['a page of 0', 'ListTrainingSessions', { MaxResults: 0 }, 'MaxResults'],
  ['a page of 101', 'ListTrainingSessions', { MaxResults: 101 }, 'MaxResults'],
  ['an unknown status', 'ListTrainingSessions', { StatusEquals: 'Sleeping' }, 'StatusEquals'],
])('control plane: %s is refused', (_what, action, over, field) => {
  const body = action === 'CreateTrainingSession' ? { ...creation, ...over } : over;
  expect(fieldOf(() => decodeControlRequest(action, body))).toBe(field);
});

test('a refusal of the control plane does not show what was sent', () => {
  const run = () =>
    decodeControlRequest('CreateTrainingSession', { ...creation, RoleArn: 'a secret that is no ARN at all' });
  expect(run).toThrow(
    /^RoleArn: expected a string matching .*, got a string of 30 characters; correct the field and call again$/,
  );
});

test('a long string is refused before any pattern runs over it', () => {
  const path = `s3://${'a'.repeat(500_000)}/${'b'.repeat(500_000)}\n`;
  const start = performance.now();
  expect(
    fieldOf(() =>
      decodeControlRequest('CreateTrainingSession', { ...creation, OutputConfig: { S3Location: { Path: path } } }),
    ),
  ).toBe('OutputConfig.S3Location.Path');
  expect(performance.now() - start).toBeLessThan(500);
});
