/** Requests for a chat completion, as OpenAI's API shapes them. What changes an answer and is not offered is refused by name. */
import { complaint } from '@loopwright/protocol';
import { booleanAt, describeValue, integerAt, type JsonObject, objectAt, optional, stringAt } from '../checks.js';
import { generationFields, sortFields } from './fields.js';
import { type GenerationRequest, generationOf } from './generation.js';
import { type ChatRequestMessage, messagesAt } from './messages.js';
import { type ToolRequest, toolRequestOf } from './tools.js';

/** Without `maxTokens` an answer may use the rest of the context. */
export interface ChatRequest extends GenerationRequest, ToolRequest {
  readonly messages: readonly ChatRequestMessage[];
  /** Variables of the chat template, such as `enable_thinking`. */
  readonly templateVariables: JsonObject;
  /** A variable as well, for the templates that know it. */
  readonly reasoningEffort: string | undefined;
}

/** Fields of a request for a chat completion that are read. */
export const chatFields = [
  ...generationFields,
  'messages',
  'max_completion_tokens',
  'top_logprobs',
  'response_format',
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'reasoning_effort',
  'chat_template_kwargs',
] as const;

/** What the rendering sets itself. */
const ownVariables = ['messages', 'tools', 'addGenerationPrompt', 'continueFinalMessage', 'add_generation_prompt'];

/**
 * @param body a parsed JSON body
 * @throws `invalid_argument` naming the field that is missing, out of range or not offered
 */
export function decodeChatRequest(body: unknown): ChatRequest {
  const given = objectAt(body, 'body');
  const ignored = sortFields(given, chatFields);
  checkFormat(given);
  return {
    ...generationOf(given),
    messages: messagesAt(given.messages),
    ...logprobsOf(given),
    ...toolRequestOf(given),
    templateVariables: variablesOf(given),
    reasoningEffort: optional(given, 'reasoning_effort', 'body', (value, at) =>
      stringAt(value, at, { min: 1, max: 32 }),
    ),
    ignored,
  };
}

/** The limit is that of OpenAI's API, and so is it that the one needs the other. */
function logprobsOf(body: JsonObject): Pick<ChatRequest, 'logprobs' | 'topLogprobs'> {
  const logprobs = optional(body, 'logprobs', 'body', booleanAt) ?? false;
  const topLogprobs =
    optional(body, 'top_logprobs', 'body', (value, at) => integerAt(value, at, { min: 0, max: 20 })) ?? 0;
  if (topLogprobs > 0 && !logprobs) {
    throw complaint({
      field: 'body.top_logprobs',
      expected: 'logprobs: true beside it',
      got: `${topLogprobs} without log-probs`,
      remedy: 'set logprobs to true, or leave top_logprobs out',
    });
  }
  return { logprobs, topLogprobs };
}

/** A format is promised only where decoding keeps to it, and it is not constrained here. */
function checkFormat(body: JsonObject): void {
  const format = optional(body, 'response_format', 'body', objectAt);
  if (format === undefined || format.type === 'text') return;
  const known =
    format.type === 'json_object' || format.type === 'json_schema' ? format.type : describeValue(format.type);
  throw complaint({
    field: 'body.response_format',
    expected: 'text: the engine does not constrain what is decoded, so no other format can be guaranteed',
    got: known,
    remedy: 'leave it out, ask for JSON in the messages, and check the answer',
  });
}

function variablesOf(body: JsonObject): JsonObject {
  const variables = optional(body, 'chat_template_kwargs', 'body', objectAt) ?? {};
  const own = ownVariables.find((name) => name in variables);
  if (own !== undefined)
    throw complaint({
      field: `body.chat_template_kwargs.${own}`,
      expected: 'variables of the template that the request has no field for',
      got: 'one that rendering sets itself',
    });
  return variables;
}
