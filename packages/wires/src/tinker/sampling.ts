/** asample: request ⇄ a sampling operation, and its result as protobuf or JSON. */
import { create, toBinary } from '@bufbuild/protobuf';
import {
  complaint,
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
import { SampledSequenceSchema, SampleResponseSchema, type TopkLogprobs, TopkLogprobsSchema } from './tinker_pb.js';

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
}

const stopRules = { count: 64, characters: 1024 } as const;

/** What is asked for with a value that switches it on, and not offered. */
const notOffered = [
  'topk_sample_logprobs',
  'target_prompt_logprobs',
  'prompt_alt_tokens_k',
  'record_stability_info',
] as const;

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
  const topK = optional(params, 'top_k', field, (item, at) => integerAt(item, at, { min: -1, max: maxTokenId }));
  return {
    samplerId: stringAt(body.sampling_session_id, 'sampling_session_id', { min: 1, max: 64 }),
    sequenceNumber: digitsAt(body.seq_id, 'seq_id'),
    numSamples:
      optional(body, 'num_samples', 'body', (item, at) => integerAt(item, at, samplingRanges.numSamples)) ?? 1,
    prompt: decodeModelInput(body.prompt, 'prompt'),
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
  };
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

/** A text, a list of texts or a list of ids. */
function stopsOf(value: unknown, field: string): Pick<SamplingParams, 'stop' | 'stopTokenIds'> {
  if (value === undefined || value === null) return { stop: [], stopTokenIds: [] };
  const list = typeof value === 'string' ? [value] : arrayAt(value, field, { max: stopRules.count });
  const [stop, stopTokenIds]: [string[], number[]] = [[], []];
  list.forEach((item, index) => {
    const at = `${field}[${index}]`;
    if (typeof item === 'string') stop.push(stringAt(item, at, { min: 1, max: stopRules.characters }));
    else stopTokenIds.push(integerAt(item, at, { min: 0, max: maxTokenId }));
  });
  return { stop, stopTokenIds };
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

export function encodeSampleProto({ sequences, promptLogprobs, topkPromptLogprobs }: SampleResult): Uint8Array {
  const response = create(SampleResponseSchema, {
    sequences: sequences.map(({ tokens, logprobs, stopReason }) =>
      create(SampledSequenceSchema, {
        stopReason: stopReasons[stopReason],
        tokens: bytesOf(tokens),
        logprobs: bytesOf(logprobs),
      }),
    ),
    ...(promptLogprobs === undefined ? {} : { promptLogprobs: bytesOf(promptLogprobs) }),
    ...(topkPromptLogprobs === undefined ? {} : { topkPromptLogprobs: topkTable(topkPromptLogprobs) }),
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
