/** What both kinds of completion ask for: how to sample, how much, and in which form to answer. */
import { complaint, samplingRanges } from '@loopwright/protocol';
import {
  arrayAt,
  booleanAt,
  integerAt,
  type JsonObject,
  numberAt,
  objectAt,
  optional,
  refuseOtherKeys,
  stringAt,
} from '../checks.js';

export interface GenerationRequest {
  /** A session, a saved version or a base model; undefined where the route says it. */
  readonly model: string | undefined;
  /** Answers to draw. */
  readonly n: number;
  /** Absent: what the wire says, see the request's own default. */
  readonly maxTokens: number | undefined;
  readonly temperature: number;
  readonly topP: number;
  /** −1 keeps all. */
  readonly topK: number;
  readonly seed: number | undefined;
  readonly stop: readonly string[];
  readonly stream: boolean;
  /** Whether a stream ends with a chunk that holds the usage. */
  readonly includeUsage: boolean;
  /** Whether the answer tells the log-probability of each of its tokens. */
  readonly logprobs: boolean;
  /** Likeliest tokens that it tells for each of its places besides; 0 for none. */
  readonly topLogprobs: number;
  /** Whether the answer tells token ids and log-probs as they were sampled, for training. */
  readonly tokenIds: boolean;
  /** Unknown fields, which were left out. */
  readonly ignored: readonly string[];
}

/** Defaults of OpenAI's API. */
const defaults = { n: 1, temperature: 1, topP: 1, topK: -1 } as const;
const limits = { n: 128, stop: 16, stopCharacters: 1024, modelCharacters: 4096 } as const;

/** All but log-probs and `ignored`, which the kinds spell each in its own way. */
export function generationOf(body: JsonObject): Omit<GenerationRequest, 'logprobs' | 'topLogprobs' | 'ignored'> {
  const within = (range: { readonly min: number; readonly max: number }) => (value: unknown, at: string) =>
    numberAt(value, at, range);
  const read = <T>(key: string, readValue: (value: unknown, field: string) => T) =>
    optional(body, key, 'body', readValue);
  const streamOptions = read('stream_options', objectAt);
  if (streamOptions !== undefined)
    refuseOtherKeys(streamOptions, ['include_usage', 'include_obfuscation'], 'body.stream_options');
  return {
    model: read('model', (value, at) => stringAt(value, at, { min: 1, max: limits.modelCharacters })),
    n: read('n', (value, at) => integerAt(value, at, { min: 1, max: limits.n })) ?? defaults.n,
    maxTokens: maxTokensOf(body),
    temperature: read('temperature', within(samplingRanges.temperature)) ?? defaults.temperature,
    topP: read('top_p', within(samplingRanges.topP)) ?? defaults.topP,
    topK: read('top_k', topKAt) ?? defaults.topK,
    seed: read('seed', (value, at) => integerAt(value, at, { min: -(2 ** 31), max: 2 ** 32 - 1 })),
    stop: read('stop', stopAt) ?? [],
    stream: read('stream', booleanAt) ?? false,
    includeUsage: optional(streamOptions ?? {}, 'include_usage', 'body.stream_options', booleanAt) ?? false,
    tokenIds: read('return_token_ids', booleanAt) ?? false,
  };
}

/** Today's name and the older one; both only where they agree. */
function maxTokensOf(body: JsonObject): number | undefined {
  const tokensAt = (value: unknown, at: string) => integerAt(value, at, samplingRanges.maxTokens);
  const [today, older] = ['max_completion_tokens', 'max_tokens'].map((key) => optional(body, key, 'body', tokensAt));
  if (today !== undefined && older !== undefined && today !== older) {
    throw complaint({
      field: 'body.max_completion_tokens',
      expected: 'the same number as max_tokens, or one of the two alone',
      got: `${today} beside ${older}`,
      remedy: 'leave max_tokens out, which is the older name of the same limit',
    });
  }
  return today ?? older;
}

/** 0 and −1 keep all tokens, as other servers have it. */
function topKAt(value: unknown, field: string): number {
  const topK = integerAt(value, field, { min: -1, max: 2 ** 31 - 1 });
  return topK === 0 ? -1 : topK;
}

function stopAt(value: unknown, field: string): readonly string[] {
  const rule = { min: 1, max: limits.stopCharacters };
  if (typeof value === 'string') return [stringAt(value, field, rule)];
  return arrayAt(value, field, { max: limits.stop }).map((text, i) => stringAt(text, `${field}[${i}]`, rule));
}
