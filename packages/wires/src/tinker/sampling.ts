/** asample: request ⇄ a sampling operation, and its result as protobuf or JSON. */
import { create, toBinary } from '@bufbuild/protobuf';
import {
  complaint,
  type IdTensor,
  idTensor,
  type SampleResult,
  type SamplingParams,
  samplingRanges,
  type TokenLogprob,
} from '@loopwright/protocol';
import {
  arrayAt,
  booleanAt,
  describeValue,
  integerAt,
  type JsonObject,
  numberAt,
  objectAt,
  optional,
  stringAt,
} from '../checks.js';
import { maxTokenId } from '../tensor-data.js';
import { bytesOf } from './buffers.js';
import { samplingDefaults } from './defaults.js';
import { decodeModelInput } from './model-input.js';
import { jsonTensor } from './tensor.js';
import {
  SampledSequenceSchema,
  SampleResponseSchema,
  TensorSchema,
  type TopkLogprobs,
  TopkLogprobsSchema,
} from './tinker_pb.js';

export interface SampleRequest {
  readonly samplerId: string;
  /** As text: clones of a client count from numbers that no double holds. */
  readonly sequenceNumber: string;
  readonly numSamples: number;
  readonly prompt: Int32Array;
  /** `maxTokens` absent: up to the end of the context. */
  readonly params: Omit<SamplingParams, 'seed' | 'maxTokens'> & { readonly maxTokens?: number; readonly seed?: number };
  readonly promptLogprobs: boolean;
  readonly topkPromptLogprobs: number;
  readonly promptLogprobsLast?: number;
  readonly topkSampleLogprobs?: number;
  readonly promptTargets?: IdTensor;
}

const stopRules = { count: 64, characters: 1024 } as const;

/** What is asked for with a value that switches it on, and not offered. */
const notOffered = ['prompt_alt_tokens_k', 'record_stability_info'] as const;

/** @throws `invalid_argument` naming the field */
export function decodeSampleRequest(value: unknown): SampleRequest {
  const body = objectAt(value, 'body');
  for (const key of notOffered) {
    if (body[key] === undefined || body[key] === null || body[key] === 0 || body[key] === false) continue;
    throw complaint({
      field: key,
      expected: 'nothing: this server does not offer it',
      got: describeValue(body[key]),
      remedy: 'leave it out',
    });
  }
  const field = 'sampling_params';
  const params = objectAt(body.sampling_params, field);
  const within = (range: { readonly min: number; readonly max: number }) => (item: unknown, at: string) =>
    numberAt(item, at, range);
  const maxTokens = optional(params, 'max_tokens', field, (item, at) => integerAt(item, at, samplingRanges.maxTokens));
  const seed = optional(params, 'seed', field, seedAt);
  const prompt = decodeModelInput(body.prompt, 'prompt');
  const topkSample = optional(body, 'topk_sample_logprobs', 'body', (item, at) =>
    integerAt(item, at, samplingRanges.topkSampleLogprobs),
  );
  const last = optional(body, 'prompt_logprobs_last_n', 'body', (item, at) =>
    integerAt(item, at, { min: 1, max: Math.max(1, prompt.length - 1) }),
  );
  const targets = optional(body, 'target_prompt_logprobs', 'body', targetsAt);
  const topK = optional(params, 'top_k', field, (item, at) => integerAt(item, at, { min: -1, max: maxTokenId }));
  return {
    samplerId: stringAt(body.sampling_session_id, 'sampling_session_id', { min: 1, max: 64 }),
    sequenceNumber: digitsAt(body.seq_id, 'seq_id'),
    numSamples:
      optional(body, 'num_samples', 'body', (item, at) => integerAt(item, at, samplingRanges.numSamples)) ?? 1,
    prompt,
    params: {
      ...(maxTokens === undefined ? {} : { maxTokens }),
      temperature:
        optional(params, 'temperature', field, within(samplingRanges.temperature)) ?? samplingDefaults.temperature,
      topK: topK === undefined || topK === 0 ? samplingDefaults.topK : topK,
      topP: optional(params, 'top_p', field, within(samplingRanges.topP)) ?? samplingDefaults.topP,
      ...stopsOf(params.stop, `${field}.stop`),
      ...(seed === undefined ? {} : { seed }),
    },
    promptLogprobs: optional(body, 'prompt_logprobs', 'body', booleanAt) ?? false,
    topkPromptLogprobs:
      optional(body, 'topk_prompt_logprobs', 'body', (item, at) =>
        integerAt(item, at, samplingRanges.topkPromptLogprobs),
      ) ?? 0,
    ...(last === undefined ? {} : { promptLogprobsLast: last }),
    ...(topkSample === undefined || topkSample === 0 ? {} : { topkSampleLogprobs: topkSample }),
    ...(targets === undefined ? {} : { promptTargets: targets }),
  };
}

/** Ids of any size and −1, (N,K); cells that a sparse tensor leaves out ask for nothing, as −1 does. */
function targetsAt(value: unknown, field: string): IdTensor {
  const { data, shape } = jsonTensor(value, field, -1);
  const flat = arrayAt(data, `${field}.data`);
  const [rows, width = 1, ...others] = arrayAt(shape, `${field}.shape`).map((size) =>
    integerAt(size, `${field}.shape`, { min: 1, max: maxTokenId }),
  );
  if (rows === undefined || others.length > 0 || rows * width !== flat.length) {
    throw complaint({ field, expected: 'a tensor of two sizes', got: `${flat.length} values` });
  }
  const ids = flat.map((id, index) => integerAt(id, `${field}.data[${index}]`, { min: -1, max: maxTokenId }));
  return idTensor(Int32Array.from(ids), [rows, width]);
}

/** A whole number from 0 of at most 19 digits. */
function digitsAt(value: unknown, field: string): string {
  const text = typeof value === 'number' && Number.isSafeInteger(value) ? String(value) : value;
  if (typeof text === 'string' && /^\d{1,19}$/.test(text)) return text;
  throw complaint({ field, expected: 'a whole number from 0', got: describeValue(value) });
}

/** Seeds of up to 64 bits, folded to 32. */
function seedAt(value: unknown, field: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return Number(BigInt.asUintN(32, BigInt(value)));
  if (typeof value === 'string' && /^-?\d{1,20}$/.test(value)) return Number(BigInt.asUintN(32, BigInt(value)));
  throw complaint({ field, expected: 'a whole number', got: describeValue(value) });
}

/**
 * A text, a list of texts or a list of ids. What is given takes the place of the model's end of sequence: an empty list stops at
 * nothing.
 */
function stopsOf(value: unknown, field: string): Pick<SamplingParams, 'stop' | 'stopTokenIds' | 'ignoreEos'> {
  if (value === undefined || value === null) return { stop: [], stopTokenIds: [] };
  const list = typeof value === 'string' ? [value] : arrayAt(value, field, { max: stopRules.count });
  const [stop, stopTokenIds]: [string[], number[]] = [[], []];
  list.forEach((item, index) => {
    const at = `${field}[${index}]`;
    if (typeof item === 'string') stop.push(stringAt(item, at, { min: 1, max: stopRules.characters }));
    else stopTokenIds.push(integerAt(item, at, { min: 0, max: maxTokenId }));
  });
  return { stop, stopTokenIds, ignoreEos: true };
}

const stopReasons = { stop: 0, length: 1 } as const;
/** How an empty cell of a top-k table is written. */
const emptyLogprob = -99_999;

function topkTable(rows: readonly (readonly TokenLogprob[])[]): TopkLogprobs {
  const k = rows.reduce((most, row) => Math.max(most, row.length), 0);
  const ids = new Int32Array(rows.length * k);
  const logprobs = new Float32Array(rows.length * k).fill(emptyLogprob);
  rows.forEach((row, index) => {
    row.forEach(({ tokenId, logprob }, column) => {
      ids[index * k + column] = tokenId;
      logprobs[index * k + column] = logprob;
    });
  });
  return create(TopkLogprobsSchema, { tokenIds: bytesOf(ids), logprobs: bytesOf(logprobs), k, length: rows.length });
}

/** A row for each token of the prompt but the first. */
function targetTensor(logprobs: Float32Array, promptTokens: number) {
  const shape = [promptTokens - 1, logprobs.length / (promptTokens - 1)].map(BigInt);
  return create(TensorSchema, { encoding: { case: 'dense', value: bytesOf(logprobs) }, dtype: 1, shape });
}

export function encodeSampleProto(result: SampleResult): Uint8Array {
  const { sequences, promptLogprobs, topkPromptLogprobs, promptTargetLogprobs, prefillTokens } = result;
  const response = create(SampleResponseSchema, {
    sequences: sequences.map(({ tokens, logprobs, stopReason, topkLogprobs }) =>
      create(SampledSequenceSchema, {
        stopReason: stopReasons[stopReason],
        tokens: bytesOf(tokens),
        logprobs: bytesOf(logprobs),
        ...(topkLogprobs === undefined ? {} : { topkSampledLogprobs: topkTable(topkLogprobs) }),
      }),
    ),
    ...(promptLogprobs === undefined ? {} : { promptLogprobs: bytesOf(promptLogprobs) }),
    ...(topkPromptLogprobs === undefined ? {} : { topkPromptLogprobs: topkTable(topkPromptLogprobs) }),
    ...(promptTargetLogprobs === undefined
      ? {}
      : { targetPromptLogprobs: targetTensor(promptTargetLogprobs, prefillTokens) }),
  });
  return toBinary(SampleResponseSchema, response);
}

export function encodeSampleJson({ sequences, promptLogprobs, topkPromptLogprobs }: SampleResult): JsonObject {
  return {
    type: 'sample',
    sequences: sequences.map(({ tokens, logprobs, stopReason }) => ({
      stop_reason: stopReason,
      tokens: Array.from(tokens),
      logprobs: Array.from(logprobs),
    })),
    ...(promptLogprobs === undefined
      ? {}
      : { prompt_logprobs: Array.from(promptLogprobs, (value) => (Number.isFinite(value) ? value : null)) }),
    ...(topkPromptLogprobs === undefined
      ? {}
      : {
          topk_prompt_logprobs: topkPromptLogprobs.map((row, index) =>
            index === 0 ? null : row.map(({ tokenId, logprob }) => [tokenId, logprob]),
          ),
        }),
  };
}
