/** ExecuteTrainingOperation: request body ⇄ a complete training operation. */
import { type AdamParams, adamRanges, type PassOperation, type TrainingOperation } from '@loopwright/protocol';
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
import type { ArnMap } from './arn.js';
import { decodeDatum, encodeDatum } from './datum.js';
import { adamDefaults } from './defaults.js';
import { completeLoss, encodeLossConfig, lossNameAt } from './loss.js';

export interface TrainingRequest {
  /** From 1. */
  readonly sequenceNumber: number;
  readonly clientToken?: string;
  readonly operation: TrainingOperation;
}

export const maxSequenceNumber = 2 ** 31 - 1;
const descriptionRule = { max: 1024 } as const;
const clientTokenRule = { min: 1, max: 128, pattern: /^[a-zA-Z0-9-]+$/ } as const;

/** @throws `invalid_argument` */
export function decodeClientToken(value: unknown, field: string): string {
  return stringAt(value, field, clientTokenRule);
}

/** Ten years. */
const maxTtlSeconds = 315_360_000;

/** Wire members of `operationConfig`, by operation type. */
const members = {
  forward: 'forward',
  'forward-backward': 'forwardBackward',
  'optim-step': 'optimizerStep',
  'save-weights': 'saveWeights',
  'save-state': 'saveState',
  'load-state': 'loadState',
} as const satisfies Record<TrainingOperation['type'], string>;
export const trainingMembers = Object.values(members);
export function trainingMember(type: TrainingOperation['type']): (typeof trainingMembers)[number] {
  return members[type];
}

/** The request without its operation: cheap, for what is decided before the datums are read. */
export function decodeTrainingHeader(body: unknown): Omit<TrainingRequest, 'operation'> {
  const request = objectAt(body, 'body');
  const clientToken = optional(request, 'clientToken', 'body', (value) => decodeClientToken(value, 'clientToken'));
  return {
    sequenceNumber: integerAt(request.sequenceNumber, 'sequenceNumber', { min: 1, max: maxSequenceNumber }),
    ...(clientToken === undefined ? {} : { clientToken }),
  };
}

/**
 * Decodes a request body with this wire's defaults filled in.
 *
 * @throws `invalid_argument` naming the field, such as `operationConfig.forwardBackward.datumList[3].lossFnInputs.weights`
 */
export function decodeTrainingRequest(body: unknown, { arns }: { readonly arns: ArnMap }): TrainingRequest {
  const header = decodeTrainingHeader(body);
  const { operationConfig } = objectAt(body, 'body');
  return { ...header, operation: decodeTrainingOperation(operationConfig, arns) };
}

function decodeTrainingOperation(operationConfig: unknown, arns: ArnMap): TrainingOperation {
  const { name, config, field } = onlyMember(operationConfig, trainingMembers, 'operationConfig');
  switch (name) {
    case 'forward':
      return decodePass('forward', config, field);
    case 'forwardBackward':
      return decodePass('forward-backward', config, field);
    case 'optimizerStep':
      refuseOtherKeys(config, ['adamParamsConfig'], field);
      return { type: 'optim-step', adam: decodeAdam(config.adamParamsConfig, `${field}.adamParamsConfig`) };
    case 'saveWeights': {
      refuseOtherKeys(config, ['mergeWeights', 'description', 'ttlSeconds'], field);
      const ttl = (value: unknown, at: string) => integerAt(value, at, { min: 1, max: maxTtlSeconds });
      return {
        type: 'save-weights',
        merge: optional(config, 'mergeWeights', field, booleanAt) ?? false,
        description: descriptionOf(config, field),
        ttlSeconds: optional(config, 'ttlSeconds', field, ttl) ?? null,
      };
    }
    case 'saveState':
      refuseOtherKeys(config, ['description'], field);
      return { type: 'save-state', description: descriptionOf(config, field) };
    case 'loadState':
      refuseOtherKeys(config, ['modelPackageArn', 'loadOptimizer'], field);
      return {
        type: 'load-state',
        version: arns.toVersion(config.modelPackageArn, `${field}.modelPackageArn`),
        loadOptimizer: booleanAt(config.loadOptimizer, `${field}.loadOptimizer`),
      };
    default:
      return name satisfies never;
  }
}

function descriptionOf(config: JsonObject, field: string): string {
  return optional(config, 'description', field, (value, at) => stringAt(value, at, descriptionRule)) ?? '';
}

function decodePass(type: PassOperation['type'], config: JsonObject, field: string): PassOperation {
  refuseOtherKeys(config, ['datumList', 'lossFnName', 'lossFnConfig'], field);
  const name = lossNameAt(config.lossFnName, `${field}.lossFnName`);
  const configField = `${field}.lossFnConfig`;
  const lossConfig = optional(config, 'lossFnConfig', field, objectAt) ?? {};
  const loss = completeLoss(name, lossConfig, configField, 'wire');
  const list = arrayAt(config.datumList, `${field}.datumList`, { min: 1 });
  return { type, loss, data: list.map((datum, index) => decodeDatum(datum, `${field}.datumList[${index}]`, name)) };
}

const adamNames = Object.keys(adamRanges) as readonly (keyof AdamParams)[]; // true: the keys of that table

function decodeAdam(value: unknown, field: string): AdamParams {
  return completeAdam(objectAt(value, field), field);
}

/**
 * Optimizer parameters with this wire's defaults; only `learningRate` must be given.
 *
 * @throws `invalid_argument` naming the field that is unknown or out of range
 */
export function completeAdam(given: JsonObject, field: string): AdamParams {
  refuseOtherKeys(given, adamNames, field);
  const read = (name: keyof AdamParams): number => {
    const range = { ...adamRanges[name], above: name === 'learningRate' };
    const fallback = name === 'learningRate' ? undefined : adamDefaults[name];
    return numberAt(given[name] ?? fallback, `${field}.${name}`, range);
  };
  return {
    learningRate: read('learningRate'),
    beta1: read('beta1'),
    beta2: read('beta2'),
    eps: read('eps'),
    weightDecay: read('weightDecay'),
    gradClipNorm: read('gradClipNorm'),
    loraPlusLrRatio: read('loraPlusLrRatio'),
  };
}

/** The body of a request, ready for `JSON.stringify`. Everything is written out but an empty description and members that are off. */
export function encodeTrainingRequest(
  { sequenceNumber, clientToken, operation }: TrainingRequest,
  { arns }: { readonly arns: ArnMap },
): JsonObject {
  return {
    sequenceNumber,
    ...(clientToken === undefined ? {} : { clientToken }),
    operationConfig: { [members[operation.type]]: encodeTrainingConfig(operation, arns) },
  };
}

function encodeTrainingConfig(operation: TrainingOperation, arns: ArnMap): JsonObject {
  switch (operation.type) {
    case 'forward':
    case 'forward-backward': {
      const lossFnConfig = encodeLossConfig(operation.loss);
      return {
        lossFnName: operation.loss.name,
        ...(lossFnConfig === undefined ? {} : { lossFnConfig }),
        datumList: operation.data.map(encodeDatum),
      };
    }
    case 'optim-step':
      return { adamParamsConfig: operation.adam };
    case 'save-weights':
      return {
        ...(operation.merge ? { mergeWeights: true } : {}),
        ...(operation.description === '' ? {} : { description: operation.description }),
        ...(operation.ttlSeconds === null ? {} : { ttlSeconds: operation.ttlSeconds }),
      };
    case 'save-state':
      return operation.description === '' ? {} : { description: operation.description };
    case 'load-state':
      return { modelPackageArn: arns.toArn(operation.version), loadOptimizer: operation.loadOptimizer };
    default:
      return operation satisfies never;
  }
}
