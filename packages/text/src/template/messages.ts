/** Messages of a chat, and the form in which templates expect them. */

import { complaint } from '@loopwright/protocol';
import { type ExactJson, JsonNumber, JsonObject } from './exact-json.js';

/** A piece of a message's content; `{ type: 'text', text }` is the one that every template knows. */
export interface ContentPart {
  readonly type: string;
  readonly text?: string;
  readonly [extra: string]: unknown;
}

/** One turn. Other keys (`tool_calls`, `reasoning_content`, `name`, …) reach the template as they are. */
export interface ChatMessage {
  /** `system`, `user`, `assistant`, `tool`, or whatever the template knows. */
  readonly role: string;
  readonly content?: string | readonly ContentPart[] | null;
  readonly [extra: string]: unknown;
}

/** JSON as plain data, but for numbers and objects that such data can't hold: what a template may be given. */
export type JsonValue = ExactJson;

/** Nesting of messages, tools and template variables; real tool schemas stay below 20. */
const maximumDepth = 64;

/** The three names under which templates look for a model's reasoning. */
const reasoningKeys = ['reasoning_content', 'reasoning', 'thinking'] as const;

/** Roles are compared and printed by templates, so they must be plain words: a role can't smuggle in a control token. */
const rolePattern = /^[A-Za-z0-9_.-]{1,64}$/;

/**
 * Checks that `value` is plain JSON data and copies it; keys whose value is undefined are left out.
 *
 * @throws `invalid_argument` for functions, symbols, bigints, cycles or nesting above 64, naming the path.
 */
export function jsonValue(value: unknown, field: string, depth = 0): JsonValue {
  if (depth > maximumDepth) {
    throw complaint({ field, expected: `nesting of at most ${maximumDepth}`, got: 'deeper nesting or a cycle' });
  }
  if (value === null || typeof value === 'boolean' || typeof value === 'number') return value;
  if (typeof value === 'string') return wellFormed(value);
  if (Array.isArray(value)) return value.map((item, i) => jsonValue(item, `${field}[${i}]`, depth + 1));
  if (value instanceof JsonNumber) return value;
  if (typeof value === 'object') {
    const isExact = value instanceof JsonObject;
    const entries = (isExact ? value.entries : Object.entries(value)).flatMap(([key, item], i) =>
      item === undefined ? [] : [[wellFormed(key), jsonValue(item, `${field}.<key ${i}>`, depth + 1)] as const],
    );
    return isExact ? new JsonObject(entries) : Object.fromEntries(entries);
  }
  throw complaint({ field, expected: 'JSON data', got: typeof value });
}

/** Replaces lone surrogates, which no encoding can carry, by U+FFFD. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, '\ufffd');
}

/**
 * Messages as the reference renders them: keys with null values dropped, a reasoning field known under all three of its names.
 *
 * @throws `invalid_argument` when `messages` is not a list of objects, or a role is not a plain word.
 */
export function normalizeMessages(messages: readonly ChatMessage[]): Record<string, JsonValue>[] {
  if (!Array.isArray(messages)) {
    throw complaint({ field: 'messages', expected: 'a list of messages', got: typeof messages });
  }
  return messages.map((message: unknown, i) => {
    const field = `messages[${i}]`;
    if (typeof message !== 'object' || message === null || Array.isArray(message)) {
      throw complaint({ field, expected: 'an object with role and content', got: describe(message) });
    }
    const role = (message as { readonly role?: unknown }).role; // true: any object may be read so
    if (typeof role !== 'string' || !rolePattern.test(role)) {
      throw complaint({
        field: `${field}.role`,
        expected: 'a word of at most 64 letters, digits, dots, dashes or underscores',
        got: describe(role),
      });
    }
    const copy = jsonValue(message, field) as Record<string, JsonValue>; // true: an object stays an object
    const kept = Object.fromEntries(Object.entries(copy).filter(([, value]) => value !== null));
    const reasoning = reasoningKeys.map((key) => kept[key]).find((value) => value !== undefined);
    if (reasoning !== undefined) for (const key of reasoningKeys) kept[key] ??= reasoning;
    return kept;
  });
}

function describe(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'string') return `a string of ${value.length} characters`;
  return typeof value;
}
