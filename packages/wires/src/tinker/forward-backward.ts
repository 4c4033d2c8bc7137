/** Forward and backward passes: requests as protobuf or JSON, results as either. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { complaint, type LossName, type LossSpec, type PassOperation, type PassResult } from '@loopwright/protocol';
import { arrayAt, integerAt, isObject, type JsonObject, objectAt } from '../checks.js';
import { bytesOf } from './buffers.js';
import { buildDatum, type RawDatum } from './datum.js';
import { completeLoss } from './loss.js';
import { decodeChunks, decodeModelInput } from './model-input.js';
import { jsonTensor, protoTensor } from './tensor.js';
import {
  ArrayRecordSchema,
  BatchedTensorSchema,
  ForwardBackwardOutputSchema,
  type ForwardBackwardRequest,
  ForwardBackwardRequestSchema,
} from './tinker_pb.js';

/** Where a submission of a model stands in its order. */
export interface ModelTurn {
  readonly modelId: string;
  /** From 1. */
  readonly sequenceNumber: number;
}

/** A pass whose place is known, and whose content is read on demand, since its refusal uses the place up. */
export interface PassRequest extends ModelTurn {
  /** @throws `invalid_argument` naming what is wrong */
  readonly operation: () => PassOperation;
}

const maxSequenceNumber = 2 ** 31 - 1;

/** The model and number of a JSON body. @throws `invalid_argument` */
export function decodeTurn(body: JsonObject): ModelTurn {
  const { model_id: modelId, seq_id: number } = body;
  if (typeof modelId !== 'string')
    throw complaint({ field: 'model_id', expected: 'the id of a model', got: typeof modelId });
  return { modelId, sequenceNumber: integerAt(number, 'seq_id', { min: 1, max: maxSequenceNumber }) };
}

/** @throws `invalid_argument` for bytes that are no such message */
export function decodePassProto(bytes: Uint8Array): PassRequest {
  let request: ForwardBackwardRequest;
  try {
    request = fromBinary(ForwardBackwardRequestSchema, bytes);
  } catch (cause) {
    throw complaint({
      field: 'body',
      expected: 'a ForwardBackwardRequest',
      got: `${bytes.length} bytes that are none`,
      cause,
    });
  }
  const { modelId, seqId, lossFn, forwardOnly } = request;
  return {
    ...decodeTurn({ model_id: modelId, seq_id: seqId }),
    operation: () => {
      const loss = completeLoss(lossFn, configOf(request), 'forward_backward');
      return passOf(forwardOnly, loss, request.data.length, (index) => {
        const { modelInput, lossFnInputs } = request.data[index]!; // in range: called for each datum
        const field = `data[${index}]`;
        return {
          modelInput: decodeChunks(modelInput, `${field}.model_input`),
          inputs: Object.fromEntries(
            Object.entries(lossFnInputs).map(([key, tensor]) => [
              key,
              protoTensor(tensor, `${field}.loss_fn_inputs.${key}`),
            ]),
          ),
          field,
        };
      });
    },
  };
}

/** Numbers of the newer map, where there is one: the older holds the same. */
function configOf({ lossFnConfig, lossFnConfigV2 }: ForwardBackwardRequest): JsonObject {
  const entries = Object.entries(lossFnConfigV2).map(([key, { value }]) => [key, value.value] as const);
  return entries.length === 0 ? lossFnConfig : Object.fromEntries(entries);
}

/** Of SDKs before 0.25: the content stands in a member of its own. @throws `invalid_argument` */
export function decodePassJson(body: unknown, { forwardOnly }: { readonly forwardOnly: boolean }): PassRequest {
  const request = objectAt(body, 'body');
  const field = forwardOnly ? 'forward_input' : 'forward_backward_input';
  return {
    ...decodeTurn(request),
    operation: () => {
      const { data, loss_fn: name, loss_fn_config: config } = objectAt(request[field], field);
      const loss = completeLoss(name, isObject(config) ? config : {}, field);
      const list = arrayAt(data, `${field}.data`);
      return passOf(forwardOnly, loss, list.length, (index) => {
        const at = `${field}.data[${index}]`;
        const { model_input: input, loss_fn_inputs: inputs } = objectAt(list[index], at);
        return {
          modelInput: decodeModelInput(input, `${at}.model_input`),
          inputs: Object.fromEntries(
            Object.entries(objectAt(inputs, `${at}.loss_fn_inputs`)).map(([key, tensor]) => [
              key,
              jsonTensor(tensor, `${at}.loss_fn_inputs.${key}`),
            ]),
          ),
          field: at,
        };
      });
    },
  };
}

function passOf(
  forwardOnly: boolean,
  loss: LossSpec,
  count: number,
  datum: (index: number) => RawDatum,
): PassOperation {
  if (count === 0) throw complaint({ field: 'data', expected: 'at least one datum', got: 'none' });
  const name: LossName = loss.name;
  const data = Array.from({ length: count }, (_, index) => buildDatum(datum(index), name));
  return { type: forwardOnly ? 'forward' : 'forward-backward', data, loss };
}

/** What the SDK calls the record of a datum's outputs. */
const outputType = 'TorchLossReturn';

/** Every name carries how the values of chunks are put together. */
function metricsOf({ lossSum, metrics, trainingTokens }: PassResult): Record<string, number> {
  const own: Record<string, number> = { 'loss:sum': lossSum, 'num_tokens:sum': trainingTokens };
  for (const [name, value] of Object.entries(metrics)) {
    if (Number.isFinite(value)) own[`${name.replace(/:/g, '_')}:mean`] = value;
  }
  return own;
}

/** Targets for each position of a datum, from the lengths of its request and its result. */
export interface PassShape {
  /** Tokens of each datum's model input. */
  readonly lengths: readonly number[];
}

export function encodePassProto(result: PassResult, { lengths }: PassShape): Uint8Array {
  const records = result.outputs.map(({ logprobs }, index) => {
    const width = logprobs.length / lengths[index]!; // as many datums as outputs
    const offsets = new BigInt64Array([0n, BigInt(logprobs.byteLength)]);
    const tensor = create(BatchedTensorSchema, {
      data: bytesOf(logprobs),
      offsets: bytesOf(offsets),
      dtype: 1,
      trailingShape: width === 1 ? [] : [BigInt(width)],
    });
    return create(ArrayRecordSchema, { fields: { logprobs: tensor }, numDatums: 1n });
  });
  const output = { lossFnOutputType: outputType, lossFnOutputs: records, metrics: metricsOf(result) };
  return toBinary(ForwardBackwardOutputSchema, create(ForwardBackwardOutputSchema, output));
}

export function encodePassJson(result: PassResult, { lengths }: PassShape): JsonObject {
  return {
    loss_fn_output_type: outputType,
    loss_fn_outputs: result.outputs.map(({ logprobs }, index) => {
      const width = logprobs.length / lengths[index]!; // as many datums as outputs
      const shape = width === 1 ? [logprobs.length] : [lengths[index]!, width];
      return { logprobs: { data: Array.from(logprobs), dtype: 'float32', shape } };
    }),
    metrics: metricsOf(result),
  };
}
