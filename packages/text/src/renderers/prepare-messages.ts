/** Messages in the one form that the templates of a family take: what clients send in several ways is rendered in one. */
import { parseExactJson } from '../template/exact-json.js';
import type { ChatMessage } from '../template/messages.js';
import { hasDoubledKey } from '../turns/json-extent.js';
import type { ChatFamily } from './families.js';

/**
 * Arguments of calls become an object: given as one, as its JSON text (numbers and order of which stay as they are written), or as null, '' or nothing for no arguments. Text that is no object
 * stays as it is, so that a chat with a call that was cut can go on. Mistral's calls and results get ids of nine letters or digits.
 */
export function prepareMessages(messages: readonly ChatMessage[], family: ChatFamily): readonly ChatMessage[] {
  const plain = messages.map((message) =>
    Array.isArray(message.tool_calls) ? { ...message, tool_calls: message.tool_calls.map(withArguments) } : message,
  );
  return family === 'mistral' ? withShortIds(plain) : plain;
}

function withArguments(call: unknown): unknown {
  if (!isRecord(call)) return call;
  if (isRecord(call.function))
    return { ...call, function: { ...call.function, arguments: argumentsOf(call.function.arguments) } };
  return 'name' in call ? { ...call, arguments: argumentsOf(call.arguments) } : call;
}

function argumentsOf(value: unknown): unknown {
  if (value === undefined || value === null) return {};
  if (typeof value !== 'string') return value;
  if (value.trim() === '') return {};
  try {
    const parsed = parseExactJson(value);
    if (parsed === null) return {};
    return isRecord(parsed) && !hasDoubledKey(value) ? parsed : value;
  } catch {
    return value;
  }
}

/** Its template refuses other ids. A result without one belongs to the next call that has none yet. */
function withShortIds(messages: readonly ChatMessage[]): ChatMessage[] {
  let open: string[] = [];
  return messages.map((message, i) => {
    if (message.role === 'tool' || message.role === 'tool_results') {
      const { tool_call_id: given } = message;
      const next = open.shift();
      return {
        ...message,
        tool_call_id: typeof given === 'string' ? shortCallId(given) : (next ?? shortCallId(`${i}`)),
      };
    }
    if (!Array.isArray(message.tool_calls)) return message;
    const calls = message.tool_calls.map((call: unknown, k) =>
      isRecord(call) ? { ...call, id: shortCallId(typeof call.id === 'string' ? call.id : `${i}/${k}`) } : call,
    );
    open = calls.flatMap((call) => (isRecord(call) && typeof call.id === 'string' ? [call.id] : []));
    return { ...message, tool_calls: calls };
  });
}

/** Nine letters and digits, the same for the same id: itself where it is so already. */
export function shortCallId(id: string): string {
  if (/^[A-Za-z0-9]{9}$/.test(id)) return id;
  // Two FNV-1a sums of 32 bits: ids must differ within one chat, which nobody gains by breaking.
  let [low, high] = [0x811c9dc5, 0x01000193];
  for (let at = 0; at < id.length; at++) {
    low = Math.imul(low ^ id.charCodeAt(at), 0x01000193);
    high = Math.imul(high ^ (id.charCodeAt(at) + at), 0x01000193);
  }
  const digits = (sum: number): string => (sum >>> 0).toString(36).padStart(7, '0');
  return (digits(low) + digits(high).slice(-2)).slice(-9);
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
