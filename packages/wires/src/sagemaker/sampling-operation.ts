/** ExecuteSamplingOperation: request body ⇄ a sampling operation whose weights and seed the server still has to fix. */
import { type SamplingParams, samplingRanges, type VersionId } from '@loopwright/protocol';
import {
  arrayAt,
  booleanAt,
  integerAt,
  type JsonObject,
  numberAt,
  objectAt,
  onlyMember,
  optional,
  refuseOtherKeys,
  stringAt,
} from '../checks.js';
import { maxTokenId } from '../tensor-data.js';
import type { ArnMap } from './arn.js';
import { decodeModelInput, encodeModelInput } from './datum.js';
import { samplingDefaults } from './defaults.js';

/** Which weights a caller asked for; the server turns `latest` into a version (or the base) at acceptance. */
export type WeightsChoice = { readonly type: 'latest' } | { readonly type: 'version'; readonly id: VersionId };

/** Complete but for the seed, which the server draws where the caller gave none. */
export type SamplingParamsChoice = Omit<SamplingParams, 'seed'> & { readonly seed?: number };

export interface SampleChoice {
  readonly type: 'sample';
  /** Token ids, length ≥ 1. */
  readonly prompt: Int32Array;
  readonly numSamples: number;
  readonly params: SamplingParamsChoice;
  readonly weights: WeightsChoice;
  readonly promptLogprobs: boolean;
  readonly topkPromptLogprobs: number;
}

export type SamplingRequest =
  | SampleChoice
  | { readonly type: 'compute-logprobs'; readonly prompt: Int32Array; readonly weights: WeightsChoice }
  | { readonly type: 'load-weights'; readonly version: VersionId };

const members = {
  sample: 'sample',
  'compute-logprobs': 'computeLogprobs',
  'load-weights': 'loadWeightsForSampling',
} as const satisfies Record<SamplingRequest['type'], string>;
export const samplingMembers = Object.values(members);
export function samplingMember(type: SamplingRequest['type']): (typeof samplingMembers)[number] {
  return members[type];
}

/** Seeds: what fits 32 bits, signed or not. */
export const seedRange = { min: -(2 ** 31), max: 2 ** 32 - 1 } as const;
const stopRules = { count: 64, characters: 1024 } as const;

/**
 * Decodes a request body with this wire's defaults filled in.
 *
 * @throws `invalid_argument` naming the field, such as `operationConfig.sample.samplingParams.topP`
 */
export function decodeSamplingRequest(body: unknown, { arns }: { readonly arns: ArnMap }): SamplingRequest {
  const { operationConfig } = objectAt(body, 'body');
  const { name, config, field } = onlyMember(operationConfig, samplingMembers, 'operationConfig');
  switch (name) {
    case 'sample':
      return decodeSample(config, field, arns);
    case 'computeLogprobs':
      refuseOtherKeys(config, ['prompt', 'modelPackageArn'], field);
      return {
        type: 'compute-logprobs',
        prompt: decodeModelInput(config.prompt, `${field}.prompt`),
        weights: weightsOf(config, field, arns),
      };
    case 'loadWeightsForSampling':
      refuseOtherKeys(config, ['modelPackageArn'], field);
      return { type: 'load-weights', version: arns.toVersion(config.modelPackageArn, `${field}.modelPackageArn`) };
    default:
      return name satisfies never;
  }
}

function weightsOf(config: JsonObject, field: string, arns: ArnMap): WeightsChoice {
  const id = optional(config, 'modelPackageArn', field, arns.toVersion);
  return id === undefined ? { type: 'latest' } : { type: 'version', id };
}

function decodeSample(config: JsonObject, field: string, arns: ArnMap): SampleChoice {
  const known = [
    'prompt',
    'numSamples',
    'samplingParams',
    'includePromptLogprobs',
    'topkPromptLogprobs',
    'modelPackageArn',
  ];
  refuseOtherKeys(config, known, field);
  const paramsField = `${field}.samplingParams`;
  const topk = (value: unknown, at: string) => integerAt(value, at, samplingRanges.topkPromptLogprobs);
  return {
    type: 'sample',
    prompt: decodeModelInput(config.prompt, `${field}.prompt`),
    numSamples: integerAt(config.numSamples, `${field}.numSamples`, samplingRanges.numSamples),
    params: completeSamplingParams(objectAt(config.samplingParams, paramsField), paramsField),
    weights: weightsOf(config, field, arns),
    promptLogprobs: optional(config, 'includePromptLogprobs', field, booleanAt) ?? false,
    topkPromptLogprobs: optional(config, 'topkPromptLogprobs', field, topk) ?? 0,
  };
}

function topKAt(value: unknown, field: string): number {
  const topK = integerAt(value, field, { min: -1, max: maxTokenId });
  return topK === 0 ? -1 : topK;
}

function stopAt(value: unknown, field: string): readonly string[] {
  return arrayAt(value, field, { max: stopRules.count }).map((text, index) =>
    stringAt(text, `${field}[${index}]`, { min: 1, max: stopRules.characters }),
  );
}

function stopIdsAt(value: unknown, field: string): readonly number[] {
  return arrayAt(value, field, { max: stopRules.count }).map((id, index) =>
    integerAt(id, `${field}[${index}]`, { min: 0, max: maxTokenId }),
  );
}

/**
 * Sampling parameters with this wire's defaults; only `maxTokens` must be given. A `topK` of 0 keeps all, as −1 does.
 *
 * @throws `invalid_argument` naming the field that is unknown or out of range
 */
export function completeSamplingParams(given: JsonObject, field: string): SamplingParamsChoice {
  refuseOtherKeys(given, ['maxTokens', 'temperature', 'topK', 'topP', 'seed', 'stop', 'stopTokenIds'], field);
  const seed = optional(given, 'seed', field, (value, at) => integerAt(value, at, seedRange));
  const within = (range: { readonly min: number; readonly max: number }) => (value: unknown, at: string) =>
    numberAt(value, at, range);
  return {
    maxTokens: integerAt(given.maxTokens, `${field}.maxTokens`, samplingRanges.maxTokens),
    temperature:
      optional(given, 'temperature', field, within(samplingRanges.temperature)) ?? samplingDefaults.temperature,
    topK: optional(given, 'topK', field, topKAt) ?? samplingDefaults.topK,
    topP: optional(given, 'topP', field, within(samplingRanges.topP)) ?? samplingDefaults.topP,
    stop: optional(given, 'stop', field, stopAt) ?? samplingDefaults.stop,
    stopTokenIds: optional(given, 'stopTokenIds', field, stopIdsAt) ?? samplingDefaults.stopTokenIds,
    ...(seed === undefined ? {} : { seed }),
  };
}

/** The body of a request, ready for `JSON.stringify`; lists that are empty and features that are off are left out. */
export function encodeSamplingRequest(request: SamplingRequest, { arns }: { readonly arns: ArnMap }): JsonObject {
  return { operationConfig: { [members[request.type]]: encodeSamplingConfig(request, arns) } };
}

function encodeSamplingConfig(request: SamplingRequest, arns: ArnMap): JsonObject {
  if (request.type === 'load-weights') return { modelPackageArn: arns.toArn(request.version) };
  const weights = request.weights.type === 'version' ? { modelPackageArn: arns.toArn(request.weights.id) } : {};
  const prompt = encodeModelInput(request.prompt);
  if (request.type === 'compute-logprobs') return { prompt, ...weights };
  const { stop, stopTokenIds, ...params } = request.params;
  return {
    prompt,
    numSamples: request.numSamples,
    samplingParams: {
      ...params,
      ...(stop.length === 0 ? {} : { stop }),
      ...(stopTokenIds.length === 0 ? {} : { stopTokenIds }),
    },
    ...weights,
    ...(request.promptLogprobs ? { includePromptLogprobs: true } : {}),
    ...(request.topkPromptLogprobs === 0 ? {} : { topkPromptLogprobs: request.topkPromptLogprobs }),
  };
}
