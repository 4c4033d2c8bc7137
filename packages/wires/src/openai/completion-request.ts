/** Requests for a completion of a text or of token ids, as OpenAI's older API shapes them. */
import { complaint } from '@loopwright/protocol';
import { arrayAt, booleanAt, describeValue, integerAt, objectAt, optional, stringAt } from '../checks.js';
import { generationFields, refusedField, sortFields } from './fields.js';
import { type GenerationRequest, generationOf } from './generation.js';

/** Text, or the ids of a prompt as they are. */
export type CompletionPrompt = string | readonly number[];

export interface CompletionRequest extends GenerationRequest {
  readonly prompts: readonly CompletionPrompt[];
  readonly maxTokens: number;
  /** Whether answers begin with their prompt. */
  readonly echo: boolean;
}

/** Default of OpenAI's API. */
const defaultMaxTokens = 16;
const limits = { prompts: 128 } as const;

/** Fields of a request for a completion that are read. */
export const completionFields = [...generationFields, 'prompt', 'echo'] as const;

/** @throws `invalid_argument` naming the field that is missing, out of range or not offered */
export function decodeCompletionRequest(body: unknown): CompletionRequest {
  const given = objectAt(body, 'body');
  const ignored = sortFields(given, completionFields);
  const generation = generationOf(given);
  const logprobs = optional(given, 'logprobs', 'body', (value, at) => integerAt(value, at, { min: 0, max: 5 }));
  const prompts = promptsOf(given.prompt);
  if (generation.stream && prompts.length > 1) {
    throw complaint({
      field: 'body.prompt',
      expected: 'one prompt where the answer is streamed',
      got: `${prompts.length}`,
      remedy: 'send one request for each, or leave stream out',
    });
  }
  const echo = optional(given, 'echo', 'body', booleanAt) ?? false;
  if (echo && (logprobs !== undefined || generation.tokenIds))
    throw refusedField(
      'echo',
      'leave it out where log-probs are asked for: those of a prompt are the session’s own operation',
    );
  return {
    ...generation,
    maxTokens: generation.maxTokens ?? defaultMaxTokens,
    prompts,
    echo,
    logprobs: logprobs !== undefined,
    topLogprobs: logprobs ?? 0,
    ignored,
  };
}

/** A text, a list of texts, ids, or a list of lists of ids. */
function promptsOf(value: unknown): readonly CompletionPrompt[] {
  const field = 'body.prompt';
  const text = (given: unknown, at: string) => stringAt(given, at, { min: 1, max: Number.MAX_SAFE_INTEGER });
  if (typeof value === 'string') return [text(value, field)];
  if (!Array.isArray(value) || value.length === 0) {
    throw complaint({ field, expected: 'a text, token ids, or a list of either', got: describeValue(value) });
  }
  if (typeof value[0] === 'number') return [idsAt(value, field)];
  return arrayAt(value, field, { max: limits.prompts }).map((each, i) =>
    typeof each === 'string' ? text(each, `${field}[${i}]`) : idsAt(each, `${field}[${i}]`),
  );
}

function idsAt(value: unknown, field: string): readonly number[] {
  return arrayAt(value, field, { min: 1 }).map((id, i) =>
    integerAt(id, `${field}[${i}]`, { min: 0, max: 2 ** 31 - 1 }),
  );
}
