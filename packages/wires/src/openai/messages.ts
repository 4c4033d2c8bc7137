/** Messages of a chat request, as a chat template takes them. */
import { complaint } from '@loopwright/protocol';
import { arrayAt, describeValue, isObject, type JsonObject, objectAt, optional, stringAt } from '../checks.js';

/** One message, as a chat template takes it. */
export interface ChatRequestMessage {
  readonly role: string;
  readonly [key: string]: unknown;
}

/** A call of an earlier turn. Arguments that are no JSON object stay the text that they are. */
export interface EarlierCall {
  readonly id: string;
  readonly type: 'function';
  readonly function: { readonly name: string; readonly arguments: JsonObject | string };
}

const limits = { messages: 4096, calls: 128, idCharacters: 256, nameCharacters: 256 } as const;
/** Roles that OpenAI's API knows and this wire can render; `developer` is today's name of `system`. */
const roles = ['system', 'developer', 'user', 'assistant', 'tool'] as const;
const anyLength = { max: Number.MAX_SAFE_INTEGER };

/** @throws `invalid_argument` naming the field */
export function messagesAt(value: unknown): readonly ChatRequestMessage[] {
  return arrayAt(value, 'body.messages', { min: 1, max: limits.messages }).map((message, i) =>
    messageAt(message, `body.messages[${i}]`),
  );
}

function messageAt(value: unknown, field: string): ChatRequestMessage {
  const message = objectAt(value, field);
  const role = roles.find((name) => name === message.role);
  if (role === undefined) {
    throw complaint({
      field: `${field}.role`,
      expected: `one of ${roles.join(', ')}`,
      got: describeValue(message.role),
    });
  }
  if (role === 'assistant') return assistantAt(message, field);
  const content = contentAt(message.content, `${field}.content`);
  const name = optional(message, 'name', field, (text, at) => stringAt(text, at, { max: limits.nameCharacters }));
  const named = name === undefined ? {} : { name };
  if (role !== 'tool') return { role: role === 'developer' ? 'system' : role, content, ...named };
  const id = stringAt(message.tool_call_id, `${field}.tool_call_id`, { min: 1, max: limits.idCharacters });
  return { role, content, tool_call_id: id, ...named };
}

/** An assistant's turn may have calls and reasoning, and then needs no content. */
function assistantAt(message: JsonObject, field: string): ChatRequestMessage {
  const calls = optional(message, 'tool_calls', field, callsAt) ?? [];
  const content = optional(message, 'content', field, contentAt);
  if (content === undefined && calls.length === 0) {
    throw complaint({
      field: `${field}.content`,
      expected: 'a text, or tool_calls',
      got: describeValue(message.content),
    });
  }
  const text = (key: string) => optional(message, key, field, (given, at) => stringAt(given, at, anyLength));
  const reasoning = text('reasoning_content') ?? text('reasoning');
  return {
    role: 'assistant',
    content: content ?? '',
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(reasoning === undefined ? {} : { reasoning_content: reasoning }),
  };
}

function callsAt(value: unknown, field: string): EarlierCall[] {
  return arrayAt(value, field, { max: limits.calls }).map((call, i) => {
    const at = `${field}[${i}]`;
    const { id, type = 'function', function: called } = objectAt(call, at);
    if (type !== 'function') throw complaint({ field: `${at}.type`, expected: 'function', got: describeValue(type) });
    const { name, arguments: given } = objectAt(called, `${at}.function`);
    return {
      id: stringAt(id, `${at}.id`, { min: 1, max: limits.idCharacters }),
      type: 'function',
      function: {
        name: stringAt(name, `${at}.function.name`, { min: 1, max: limits.nameCharacters }),
        arguments: argumentsAt(given, `${at}.function.arguments`),
      },
    };
  });
}

/**
 * One form for all that clients send: an object, its JSON text, or nothing (absent, null, an empty text) for no arguments. Text that is no
 * object, such as one that was cut, is kept, so that the chat can go on.
 */
function argumentsAt(value: unknown, field: string): JsonObject | string {
  if (value === undefined || value === null) return {};
  if (isObject(value)) return value;
  const text = stringAt(value, field, anyLength);
  if (text.trim() === '') return {};
  try {
    const parsed: unknown = JSON.parse(text);
    if (isObject(parsed)) return parsed;
    return parsed === null ? {} : text;
  } catch {
    return text;
  }
}

/** Text, or text in parts, which is the same text. */
function contentAt(value: unknown, field: string): string {
  if (!Array.isArray(value)) return stringAt(value, field, anyLength);
  return value
    .map((part: unknown, i) => {
      const { type, text }: JsonObject = objectAt(part, `${field}[${i}]`);
      if (type !== 'text')
        throw complaint({
          field: `${field}[${i}].type`,
          expected: 'text',
          got: partName(type),
          remedy: 'the model reads text alone',
        });
      return stringAt(text, `${field}[${i}].text`, anyLength);
    })
    .join('');
}

const knownParts = ['image_url', 'input_audio', 'file', 'video_url', 'refusal', 'input_image', 'input_text'] as const;

/** A name that everybody knows may be shown. */
function partName(type: unknown): string {
  return knownParts.find((name) => name === type) ?? describeValue(type);
}
