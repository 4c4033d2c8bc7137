/** A chat to compare two renderings by, and the file in which renderings of others come. */
import { complaint } from '@loopwright/protocol';
import { parseExactJson } from '../template/exact-json.js';
import type { ChatMessage } from '../template/messages.js';

/** What is rendered; `kwargs` are `add_generation_prompt`, `continue_final_message` and variables of the template, as transformers takes them. */
export interface ParityCase {
  readonly case: string;
  readonly messages: readonly ChatMessage[];
  readonly tools: readonly unknown[] | null;
  readonly kwargs: Readonly<Record<string, unknown>>;
}

/** The same with what another program made of it. */
export interface ReferenceCase extends ParityCase {
  /** The text; absent where it refused the chat. */
  readonly expected?: string;
  /** Ids of that text, control tokens in it read as such. */
  readonly ids?: readonly number[];
  /** What it refused the chat with. */
  readonly error?: string;
}

export interface ReferenceFile {
  /** The time that templates were told, in local time without a zone, such as `2026-03-01T14:05:00`. */
  readonly now?: string;
  /** Who made it, such as a library and its version. */
  readonly madeBy?: string;
  readonly cases: readonly ReferenceCase[];
}

/**
 * Reads such a file: `{ now?, made_by?, cases: [{ case, messages, tools, kwargs, expected | error, ids? }] }`.
 *
 * @throws `invalid_argument` where it is no such file, naming the place
 */
export function readReferenceFile(json: string): ReferenceFile {
  let file: unknown;
  try {
    file = parseExactJson(json.replace(/^\ufeff/, ''));
  } catch (cause) {
    throw complaint({ field: 'reference', expected: 'JSON', got: 'text that is none', cause });
  }
  if (!isRecord(file) || !Array.isArray(file.cases) || file.cases.length === 0)
    throw complaint({ field: 'reference', expected: 'an object with a list of cases', got: describe(file) });
  const { now, made_by: madeBy } = file;
  if (typeof now === 'string' && Number.isNaN(Date.parse(now)))
    throw complaint({ field: 'reference.now', expected: 'a time such as 2026-03-01T14:05:00', got: 'other text' });
  return {
    ...(typeof now === 'string' ? { now } : {}),
    ...(typeof madeBy === 'string' ? { madeBy } : {}),
    cases: file.cases.map(readCase),
  };
}

function readCase(row: unknown, i: number): ReferenceCase {
  const wrong = (field: string, expected: string, value: unknown) =>
    complaint({ field: `reference.cases[${i}]${field}`, expected, got: describe(value) });
  if (!isRecord(row)) throw wrong('', 'an object', row);
  const { case: name, messages, tools = null, kwargs = {}, expected, ids, error } = row;
  if (typeof name !== 'string') throw wrong('.case', 'a name', name);
  if (!Array.isArray(messages)) throw wrong('.messages', 'a list', messages);
  if (tools !== null && !Array.isArray(tools)) throw wrong('.tools', 'a list or null', tools);
  if (!isRecord(kwargs)) throw wrong('.kwargs', 'an object', kwargs);
  if (typeof expected !== 'string' && typeof error !== 'string')
    throw wrong('.expected', 'text, or an error', expected);
  if (ids !== undefined && !(Array.isArray(ids) && ids.every(Number.isInteger)))
    throw wrong('.ids', 'a list of ids', ids);
  return {
    ...{ case: name, messages: messages as readonly ChatMessage[], tools, kwargs }, // rendering checks each message
    ...(typeof expected === 'string' ? { expected } : {}),
    ...(ids === undefined ? {} : { ids: ids as readonly number[] }), // true: checked above
    ...(typeof error === 'string' ? { error } : {}),
  };
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function describe(value: unknown): string {
  if (value === undefined) return 'none';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  return value === null ? 'null' : typeof value;
}
