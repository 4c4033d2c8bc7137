/** Requests for a chat completion, as OpenAI's API shapes them. A field that is not offered is refused by name: nothing is left out silently. */
import { complaint, type LoopwrightError, samplingRanges } from '@loopwright/protocol';
import {
  arrayAt,
  booleanAt,
  describeValue,
  integerAt,
  type JsonObject,
  numberAt,
  objectAt,
  optional,
  refuseOtherKeys,
  stringAt,
} from '../checks.js';

/** One message, as a chat template takes it. */
export interface ChatRequestMessage {
  readonly role: string;
  readonly [key: string]: unknown;
}

export interface ChatRequest {
  readonly messages: readonly ChatRequestMessage[];
  /** Answers to draw. */
  readonly n: number;
  /** Absent: as many as the context has room for. */
  readonly maxTokens: number | undefined;
  readonly temperature: number;
  readonly topP: number;
  readonly seed: number | undefined;
  readonly stop: readonly string[];
  readonly stream: boolean;
  /** Whether a stream ends with a chunk that holds the usage. */
  readonly includeUsage: boolean;
}

/** Defaults of OpenAI's API. */
const defaults = { n: 1, temperature: 1, topP: 1 } as const;
const limits = { messages: 4096, n: 128, stop: 16, stopCharacters: 1024 } as const;
/** Roles that OpenAI's API knows and this wire can render; `developer` is today's name of `system`. */
const roles = ['system', 'developer', 'user', 'assistant', 'tool'] as const;

/** Fields that say nothing about what is generated. */
const labels = ['model', 'user', 'metadata', 'store', 'service_tier', 'safety_identifier', 'prompt_cache_key'] as const;
/** Fields that are understood only where they ask for what happens anyway. */
const neutral: Readonly<Record<string, (value: unknown) => boolean>> = {
  presence_penalty: (value) => value === 0,
  frequency_penalty: (value) => value === 0,
  logprobs: (value) => value === false,
  top_logprobs: (value) => value === 0,
  logit_bias: (value) => typeof value === 'object' && value !== null && Object.keys(value).length === 0,
  response_format: (value) => typeof value === 'object' && value !== null && 'type' in value && value.type === 'text',
  tools: (value) => Array.isArray(value) && value.length === 0,
  tool_choice: (value) => value === 'none',
  parallel_tool_calls: () => true,
};
const known: readonly string[] = [
  'messages',
  'n',
  'max_tokens',
  'max_completion_tokens',
  'temperature',
  'top_p',
  'seed',
  'stop',
  'stream',
  'stream_options',
  ...labels,
  ...Object.keys(neutral),
];

/**
 * @param body a parsed JSON body
 * @throws `invalid_argument` naming the field that is missing, out of range, unknown or not offered
 */
export function decodeChatRequest(body: unknown): ChatRequest {
  const given = objectAt(body, 'body');
  refuseOtherKeys(given, known, 'body');
  for (const [field, isNeutral] of Object.entries(neutral)) {
    const value = given[field];
    if (value !== undefined && value !== null && !isNeutral(value)) throw notOffered(field);
  }
  const within = (range: { readonly min: number; readonly max: number }) => (value: unknown, at: string) =>
    numberAt(value, at, range);
  const tokensAt = (value: unknown, at: string) => integerAt(value, at, samplingRanges.maxTokens);
  const read = <T>(key: string, readValue: (value: unknown, field: string) => T) =>
    optional(given, key, 'body', readValue);
  const streamOptions = read('stream_options', objectAt);
  if (streamOptions !== undefined) refuseOtherKeys(streamOptions, ['include_usage'], 'body.stream_options');
  return {
    messages: arrayAt(given.messages, 'body.messages', { min: 1, max: limits.messages }).map(messageAt),
    n: read('n', (value, at) => integerAt(value, at, { min: 1, max: limits.n })) ?? defaults.n,
    maxTokens: read('max_completion_tokens', tokensAt) ?? read('max_tokens', tokensAt),
    temperature: read('temperature', within(samplingRanges.temperature)) ?? defaults.temperature,
    topP: read('top_p', within(samplingRanges.topP)) ?? defaults.topP,
    seed: read('seed', (value, at) => integerAt(value, at, { min: -(2 ** 31), max: 2 ** 32 - 1 })),
    stop: read('stop', stopAt) ?? [],
    stream: read('stream', booleanAt) ?? false,
    includeUsage: optional(streamOptions ?? {}, 'include_usage', 'body.stream_options', booleanAt) ?? false,
  };
}

function stopAt(value: unknown, field: string): readonly string[] {
  const rule = { min: 1, max: limits.stopCharacters };
  if (typeof value === 'string') return [stringAt(value, field, rule)];
  return arrayAt(value, field, { max: limits.stop }).map((text, i) => stringAt(text, `${field}[${i}]`, rule));
}

function messageAt(value: unknown, index: number): ChatRequestMessage {
  const field = `body.messages[${index}]`;
  const { role, content, ...rest } = objectAt(value, field);
  const found = roles.find((name) => name === role);
  if (found === undefined) {
    throw complaint({ field: `${field}.role`, expected: `one of ${roles.join(', ')}`, got: describeValue(role) });
  }
  if (rest.tool_calls !== undefined && rest.tool_calls !== null) throw notOffered(`messages[${index}].tool_calls`);
  return { role: found === 'developer' ? 'system' : found, content: contentAt(content, `${field}.content`), ...rest };
}

/** Text, or text in parts, which is the same text. */
function contentAt(value: unknown, field: string): string {
  if (!Array.isArray(value)) return stringAt(value, field, { max: Number.MAX_SAFE_INTEGER });
  return value
    .map((part: unknown, i) => {
      const { type, text }: JsonObject = objectAt(part, `${field}[${i}]`);
      if (type !== 'text')
        throw complaint({
          field: `${field}[${i}].type`,
          expected: 'text',
          got: describeValue(type),
          remedy: 'the model reads text alone',
        });
      return stringAt(text, `${field}[${i}].text`, { max: Number.MAX_SAFE_INTEGER });
    })
    .join('');
}

function notOffered(field: string): LoopwrightError {
  return complaint({
    field: `body.${field}`,
    expected: 'to be left out: it is not offered here',
    got: 'a value that asks for it',
    remedy: 'leave it out, or sample token ids with the session’s own operations',
  });
}
