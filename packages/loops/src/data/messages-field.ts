/** Messages within a row: what every chat template needs of them, and nothing more. */
import type { ChatMessage } from '@loopwright/text';
import { type Checked, type JsonValue, kindOf } from './row.js';

type Fields = Readonly<Record<string, JsonValue>>;

const roles: ReadonlySet<JsonValue | undefined> = new Set(['system', 'developer', 'user', 'assistant', 'tool']);

/** Undefined for what is no object. */
export function asObject(value: JsonValue | undefined): Fields | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return value as Fields; // true: lists are left out above
}

/** A value of the row's own: never one of the prototype. */
export function ownField(row: Fields, name: string): JsonValue | undefined {
  return Object.hasOwn(row, name) ? row[name] : undefined;
}

/** @param field where the messages lie, for faults */
export function checkMessages(value: JsonValue | undefined, field: string): Checked<readonly ChatMessage[]> {
  if (!Array.isArray(value) || value.length === 0) {
    return { fault: { field, expected: 'a list of messages', got: kindOf(value) } };
  }
  for (const [i, message] of value.entries()) {
    const fault = messageFault(message, `${field}[${i}]`);
    if (fault !== undefined) return { fault };
  }
  return { value: value as readonly ChatMessage[] }; // true: each was checked
}

function messageFault(message: JsonValue, field: string) {
  const fields = asObject(message);
  if (fields === undefined) return { field, expected: 'an object with role and content', got: kindOf(message) };
  const role = ownField(fields, 'role');
  if (!roles.has(role)) {
    const got = typeof role === 'string' ? 'another text' : kindOf(role);
    return { field: `${field}.role`, expected: 'system, developer, user, assistant or tool', got };
  }
  const content = ownField(fields, 'content');
  const calls = ownField(fields, 'tool_calls');
  if (calls !== undefined && calls !== null && !Array.isArray(calls)) {
    return { field: `${field}.tool_calls`, expected: 'a list of calls', got: kindOf(calls) };
  }
  if (typeof content === 'string') return undefined;
  if (content === undefined || content === null) {
    const hasCalls = role === 'assistant' && Array.isArray(calls) && calls.length > 0;
    return hasCalls
      ? undefined
      : { field: `${field}.content`, expected: 'a text, or tool_calls beside', got: kindOf(content) };
  }
  if (!Array.isArray(content)) {
    return { field: `${field}.content`, expected: 'a text or a list of parts', got: kindOf(content) };
  }
  const odd = content.findIndex((part: JsonValue) => {
    const { type, text } = asObject(part) ?? {};
    return type !== 'text' || typeof text !== 'string';
  });
  if (odd === -1) return undefined;
  return {
    field: `${field}.content[${odd}]`,
    expected: 'a part { type: "text", text }',
    got: asObject(content[odd]) === undefined ? kindOf(content[odd]) : 'an object of another form',
  };
}

/** A prompt or an answer: a text, or messages. */
export type TextOrMessages = string | readonly ChatMessage[];

export function checkTextOrMessages(value: JsonValue | undefined, field: string): Checked<TextOrMessages> {
  if (typeof value === 'string') return { value };
  if (Array.isArray(value)) return checkMessages(value, field);
  return { fault: { field, expected: 'a text or a list of messages', got: kindOf(value) } };
}
