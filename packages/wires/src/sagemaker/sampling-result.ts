/** GetSamplingOperationResult: results ⇄ bodies. */
import {
  type ComputeLogprobsResult,
  complaint,
  type OperationResults,
  type SampledSequence,
  type SampleResult,
  type SamplingOperation,
  type TokenLogprob,
} from '@loopwright/protocol';
import {
  arrayAt,
  describeValue,
  fromWireNumber,
  isObject,
  type JsonObject,
  objectAt,
  toWireNumbers,
} from '../checks.js';
import { readIds } from '../tensor-data.js';
import { decodeOutcome, type OperationOutcome, type ResultBody, resultMember } from './operation-result.js';
import { samplingMember } from './sampling-operation.js';

type SamplingType = SamplingOperation['type'];

/** A result with the type of its operation. */
export type SamplingResult = {
  [T in SamplingType]: { readonly type: T; readonly result: OperationResults[T] };
}[SamplingType];

/** The body of a completed operation. It can be stored as it is and sent again. */
export function encodeSamplingResult(done: SamplingResult): ResultBody {
  return { status: 'Completed', operationResult: { [samplingMember(done.type)]: encodePayload(done) } };
}

function encodePayload(done: SamplingResult): JsonObject {
  switch (done.type) {
    case 'sample':
      return encodeSample(done.result);
    case 'compute-logprobs':
      // The first token has no predecessor: null, as this wire spells it.
      return {
        logprobs: done.result.logprobs.length === 0 ? [] : [null, ...toWireNumbers(done.result.logprobs.subarray(1))],
      };
    case 'load-weights':
      return {};
    default:
      return done satisfies never;
  }
}

/** Every sequence says how long its prompt was; the ledger counts the prompt once a request. */
function encodeSample({ sequences, promptLogprobs, topkPromptLogprobs, prefillTokens }: SampleResult): JsonObject {
  return {
    sequences: sequences.map(({ tokens, logprobs, stopReason }) => ({
      tokens: Array.from(tokens),
      logprobs: toWireNumbers(logprobs),
      stopReason,
      tokenUsage: { prefill: prefillTokens, decode: tokens.length },
    })),
    // No null is allowed in promptLogprobs: the first is 0.
    ...(promptLogprobs === undefined ? {} : { promptLogprobs: [0, ...toWireNumbers(promptLogprobs.subarray(1))] }),
    ...(topkPromptLogprobs === undefined ? {} : { topkPromptLogprobs }),
  };
}

/** Decodes a result body for an operation of `type`. @throws `invalid_argument` or `internal` for a body that does not fit it */
export function decodeSamplingResult<T extends SamplingType>(
  body: unknown,
  type: T,
): OperationOutcome<OperationResults[T]> {
  return decodeOutcome(body, (operationResult) => {
    const member = samplingMember(type);
    const payload = resultMember(operationResult, member);
    // true: the decoder is picked by the same `type` that picks the result
    return decoders[type](payload, `operationResult.${member}`) as OperationResults[T];
  });
}

const decoders: { readonly [T in SamplingType]: (payload: JsonObject, field: string) => OperationResults[T] } = {
  sample: decodeSample,
  'compute-logprobs': decodeLogprobs,
  'load-weights': () => ({}),
};

function numbersAt(value: unknown, field: string): Float32Array {
  return Float32Array.from(arrayAt(value, field), (entry) => fromWireNumber(entry, field));
}

/** Prompt positions: the first has no predecessor and is NaN below the wires. */
function promptNumbersAt(value: unknown, field: string): Float32Array {
  const numbers = numbersAt(value, field);
  if (numbers.length > 0) numbers[0] = Number.NaN;
  return numbers;
}

function decodeLogprobs(payload: JsonObject, field: string): ComputeLogprobsResult {
  const logprobs = promptNumbersAt(payload.logprobs, `${field}.logprobs`);
  return { logprobs, prefillTokens: logprobs.length };
}

function decodeSequence(
  value: unknown,
  field: string,
): { readonly sequence: SampledSequence; readonly prefill: number } {
  const { tokens, logprobs, stopReason, tokenUsage } = objectAt(value, field);
  if (stopReason !== 'stop' && stopReason !== 'length') {
    throw complaint({ field: `${field}.stopReason`, expected: 'stop or length', got: describeValue(stopReason) });
  }
  const prefill = isObject(tokenUsage) && typeof tokenUsage.prefill === 'number' ? tokenUsage.prefill : 0;
  const sequence: SampledSequence = {
    tokens: readIds({ data: tokens, field: `${field}.tokens` }).data,
    logprobs: logprobs === undefined ? new Float32Array(0) : numbersAt(logprobs, `${field}.logprobs`),
    stopReason,
  };
  return { sequence, prefill };
}

function decodeTopk(value: unknown, field: string): readonly (readonly TokenLogprob[])[] {
  return arrayAt(value, field).map((position, index) =>
    arrayAt(position, `${field}[${index}]`).map((entry) => {
      const { tokenId, logprob } = objectAt(entry, `${field}[${index}]`);
      return {
        tokenId: fromWireNumber(tokenId, `${field}[${index}].tokenId`),
        logprob: fromWireNumber(logprob, `${field}[${index}].logprob`),
      };
    }),
  );
}

function decodeSample(payload: JsonObject, field: string): SampleResult {
  const decoded = arrayAt(payload.sequences, `${field}.sequences`).map((value, index) =>
    decodeSequence(value, `${field}.sequences[${index}]`),
  );
  const { promptLogprobs, topkPromptLogprobs } = payload;
  return {
    sequences: decoded.map(({ sequence }) => sequence),
    ...(promptLogprobs === undefined
      ? {}
      : { promptLogprobs: promptNumbersAt(promptLogprobs, `${field}.promptLogprobs`) }),
    ...(topkPromptLogprobs === undefined
      ? {}
      : { topkPromptLogprobs: decodeTopk(topkPromptLogprobs, `${field}.topkPromptLogprobs`) }),
    prefillTokens: decoded[0]?.prefill ?? 0,
  };
}
