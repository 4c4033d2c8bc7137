/** Which fields of a request mean what here: read, without effect, known but not offered, or unknown. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { type JsonObject, showKey } from '../checks.js';

/** Fields that both kinds of completion read. */
export const generationFields = [
  'model',
  'n',
  'max_tokens',
  'temperature',
  'top_p',
  'top_k',
  'seed',
  'stop',
  'stream',
  'stream_options',
  'logprobs',
  'return_token_ids',
] as const;

/** Fields that say nothing about what is generated. */
const labels = [
  'user',
  'metadata',
  'store',
  'service_tier',
  'safety_identifier',
  'prompt_cache_key',
  'prompt_cache_retention',
] as const;

type IsNeutral = (value: unknown) => boolean;
const is =
  (...neutral: readonly unknown[]): IsNeutral =>
  (value) =>
    neutral.includes(value);
const isEmptyObject: IsNeutral = (value) =>
  typeof value === 'object' && value !== null && Object.keys(value).length === 0;
const never: IsNeutral = () => false;

/**
 * Fields, of OpenAI's API or of other servers that speak it, which change what is generated and are not offered: taken where they ask for what
 * happens anyway, refused by name elsewhere.
 */
const notOffered: Readonly<Record<string, IsNeutral>> = {
  presence_penalty: is(0),
  frequency_penalty: is(0),
  repetition_penalty: is(1),
  min_p: is(0),
  logit_bias: isEmptyObject,
  best_of: is(1),
  suffix: is(''),
  modalities: (value) => Array.isArray(value) && value.length === 1 && value[0] === 'text',
  audio: never,
  prediction: never,
  web_search_options: never,
  functions: (value) => Array.isArray(value) && value.length === 0,
  function_call: is('none'),
  guided_json: never,
  guided_regex: never,
  guided_grammar: never,
  structured_outputs: never,
};

/** Ignored fields that are named at most. */
const maximumNamed = 20;

/**
 * @param read fields that the caller reads itself
 * @returns the unknown fields, which are left out
 * @throws `invalid_argument` for a field that asks for what is not offered
 */
export function sortFields(body: JsonObject, read: readonly string[]): readonly string[] {
  const ignored: string[] = [];
  for (const [field, value] of Object.entries(body)) {
    if (value === undefined || value === null || read.includes(field) || labels.some((label) => label === field))
      continue;
    const isNeutral = Object.hasOwn(notOffered, field) ? notOffered[field] : undefined;
    if (isNeutral === undefined) ignored.push(showKey(field));
    else if (!isNeutral(value)) throw refusedField(field);
  }
  return ignored.slice(0, maximumNamed);
}

export function refusedField(
  field: string,
  remedy = 'leave it out: this server does not do it, and does not leave it out silently',
): LoopwrightError {
  return complaint({
    field: `body.${field}`,
    expected: 'to be left out: it is not offered here',
    got: 'a value that asks for it',
    remedy,
  });
}
