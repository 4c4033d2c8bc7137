/** GetTrainingOperationResult: results ⇄ bodies. */
import type {
  DatumOutput,
  OperationResults,
  OptimStepResult,
  PassResult,
  TrainingOperation,
} from '@loopwright/protocol';
import {
  arrayAt,
  fromWireNumber,
  isObject,
  type JsonObject,
  objectAt,
  toWireNumber,
  toWireNumbers,
} from '../checks.js';
import type { ArnMap } from './arn.js';
import { decodeOutcome, type OperationOutcome, type ResultBody, resultMember } from './operation-result.js';
import { trainingMember } from './training-operation.js';

type TrainingType = TrainingOperation['type'];

/** A result with the type of its operation. */
export type TrainingResult = {
  [T in TrainingType]: { readonly type: T; readonly result: OperationResults[T] };
}[TrainingType];

/**
 * The body of a completed operation. It can be stored as it is and sent again.
 *
 * Passes: `lossFnOutputs` holds per datum `logprobs` (as many as target tokens) and `loss` (the sum of its token losses);
 * metrics gain `loss` (mean per datum) and `global_token_num`. Steps: metrics gain `optim/step`, `optim/grad_norm` and `actor/grad_norm`.
 */
export function encodeTrainingResult(done: TrainingResult, { arns }: { readonly arns: ArnMap }): ResultBody {
  const tokens = done.type === 'forward' || done.type === 'forward-backward' ? done.result.trainingTokens : undefined;
  return {
    status: 'Completed',
    operationResult: { [trainingMember(done.type)]: encodePayload(done, arns) },
    ...(tokens === undefined ? {} : { tokenUsage: { trainingTokens: tokens } }),
  };
}

function encodePayload(done: TrainingResult, arns: ArnMap): JsonObject {
  switch (done.type) {
    case 'forward':
    case 'forward-backward':
      return encodePass(done.result);
    case 'optim-step': {
      const { step, gradNorm, metrics } = done.result;
      return {
        metrics: encodeMetrics({
          ...metrics,
          'optim/step': step,
          'optim/grad_norm': gradNorm,
          'actor/grad_norm': gradNorm,
        }),
      };
    }
    case 'save-weights':
    case 'save-state':
      return { modelPackageArn: arns.toArn(done.result.version) };
    case 'load-state':
      return {};
    default:
      return done satisfies never;
  }
}

function encodeMetrics(metrics: Readonly<Record<string, number>>): JsonObject {
  return Object.fromEntries(Object.entries(metrics).map(([name, value]) => [name, toWireNumber(value)]));
}

function encodePass({ outputs, lossSum, metrics, trainingTokens }: PassResult): JsonObject {
  return {
    lossFnOutputType: 'ArrayRecord',
    lossFnOutputs: outputs.map(({ logprobs, loss }) => ({
      logprobs: { data: toWireNumbers(logprobs), dtype: 'float32', shape: [logprobs.length] },
      loss: { data: [toWireNumber(loss)], dtype: 'float32', shape: [1] },
    })),
    metrics: encodeMetrics({
      ...metrics,
      loss: outputs.length === 0 ? 0 : lossSum / outputs.length,
      global_token_num: trainingTokens,
    }),
    tokenUsage: { trainingTokens },
  };
}

/** Decodes a result body for an operation of `type`. @throws `invalid_argument` or `internal` for a body that does not fit it */
export function decodeTrainingResult<T extends TrainingType>(
  body: unknown,
  type: T,
  { arns }: { readonly arns: ArnMap },
): OperationOutcome<OperationResults[T]> {
  return decodeOutcome(body, (operationResult) => {
    const member = trainingMember(type);
    const payload = resultMember(operationResult, member);
    // true: the decoder is picked by the same `type` that picks the result
    return decoders[type](payload, `operationResult.${member}`, arns) as OperationResults[T];
  });
}

const decoders: {
  readonly [T in TrainingType]: (payload: JsonObject, field: string, arns: ArnMap) => OperationResults[T];
} = {
  forward: decodePass,
  'forward-backward': decodePass,
  'optim-step': decodeStep,
  'save-weights': decodeSaved,
  'save-state': decodeSaved,
  'load-state': () => ({}),
};

function decodeMetrics(payload: JsonObject, field: string): Record<string, number> {
  const metrics = isObject(payload.metrics) ? payload.metrics : {};
  return Object.fromEntries(
    Object.entries(metrics).map(([name, value]) => [name, fromWireNumber(value, `${field}.metrics.${name}`)]),
  );
}

/** `Float32Array` of a TensorData in a result; `undefined` when the output lacks it. */
function outputTensor(output: JsonObject, key: string, field: string): number[] | undefined {
  const tensor = output[key];
  if (!isObject(tensor)) return undefined;
  return arrayAt(tensor.data, `${field}.${key}.data`).map((value) => fromWireNumber(value, `${field}.${key}.data`));
}

function decodePass(payload: JsonObject, field: string): PassResult {
  const metrics = decodeMetrics(payload, field);
  const list = payload.lossFnOutputs === undefined ? [] : arrayAt(payload.lossFnOutputs, `${field}.lossFnOutputs`);
  const outputs = list.map((value, index): DatumOutput => {
    const at = `${field}.lossFnOutputs[${index}]`;
    const output = objectAt(value, at);
    const loss = outputTensor(output, 'loss', at) ?? outputTensor(output, 'actor/pg_loss', at);
    return { logprobs: Float32Array.from(outputTensor(output, 'logprobs', at) ?? []), loss: loss?.[0] ?? Number.NaN };
  });
  const usage = isObject(payload.tokenUsage) ? payload.tokenUsage.trainingTokens : undefined;
  return {
    outputs,
    lossSum: outputs.reduce((sum, output) => sum + output.loss, 0),
    metrics,
    trainingTokens: typeof usage === 'number' ? usage : (metrics.global_token_num ?? 0),
  };
}

function decodeStep(payload: JsonObject, field: string): OptimStepResult {
  const metrics = decodeMetrics(payload, field);
  return {
    step: metrics['optim/step'] ?? Number.NaN,
    gradNorm: metrics['optim/grad_norm'] ?? metrics['actor/grad_norm'] ?? Number.NaN,
    metrics,
  };
}

function decodeSaved(payload: JsonObject, field: string, arns: ArnMap): OperationResults['save-state'] {
  return { version: arns.toVersion(payload.modelPackageArn, `${field}.modelPackageArn`) };
}
