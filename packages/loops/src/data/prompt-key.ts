/** What rows of one task have in common: the prompt, told alike in whatever format it is written. */
import { type FieldColumns, findField, findPrompt } from './columns.js';
import { asObject, ownField } from './messages-field.js';
import type { DataRow, JsonValue } from './row.js';
import { canonicalJson, normalizeText, normalizeTexts } from './row-hash.js';

/**
 * The prompt or question of a row; of a conversation, what comes before the first answer; of two, what both begin with. Case, white
 * space and Unicode form don't count, nor whether a text is written as such or as the one message of a user.
 *
 * @returns undefined for rows without a prompt
 */
export function promptKey({ row }: DataRow, columns: FieldColumns): string | undefined {
  const prompt = findPrompt(row, columns).value;
  if (typeof prompt === 'string' && prompt.trim() !== '') return normalizeText(prompt);
  if (Array.isArray(prompt) && prompt.length > 0) return messagesKey(prompt);
  const messages = findField(row, 'messages', columns).value;
  if (Array.isArray(messages)) return messagesKey(messages.slice(0, firstAnswer(messages)));
  const [chosen, rejected] = [findField(row, 'chosen', columns).value, findField(row, 'rejected', columns).value];
  if (!Array.isArray(chosen) || !Array.isArray(rejected)) return undefined;
  const differ = chosen.findIndex(
    (message, i) => i >= rejected.length || canonicalJson(message) !== canonicalJson(rejected[i]),
  );
  return messagesKey(differ === -1 ? chosen : chosen.slice(0, differ));
}

function firstAnswer(messages: readonly JsonValue[]): number {
  const at = messages.findIndex((message) => roleOf(message) === 'assistant');
  return at === -1 ? messages.length : at;
}

function messagesKey(messages: readonly JsonValue[]): string | undefined {
  if (messages.length === 0) return undefined;
  const told = messages.map((message): JsonValue => {
    const fields = asObject(message) ?? {};
    const calls = ownField(fields, 'tool_calls');
    return [roleOf(message) ?? null, contentText(ownField(fields, 'content')), ...(calls == null ? [] : [calls])];
  });
  const [only] = messages;
  if (messages.length === 1 && roleOf(only) === 'user')
    return normalizeText(contentText(ownField(asObject(only) ?? {}, 'content')));
  return canonicalJson(normalizeTexts(told));
}

function roleOf(message: JsonValue | undefined): JsonValue | undefined {
  const fields = asObject(message);
  return fields === undefined ? undefined : ownField(fields, 'role');
}

/** The texts of a content, one after another, whether it is a text or parts. */
function contentText(content: JsonValue | undefined): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: JsonValue) => String(asObject(part)?.text ?? '')).join('');
}
