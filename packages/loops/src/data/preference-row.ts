/** Pairs of answers: the prompt apart from them, however the set writes it. */
import type { ChatMessage } from '@loopwright/text';
import { type FieldColumns, findField } from './columns.js';
import { checkTextOrMessages, type TextOrMessages } from './messages-field.js';
import { type Checked, type DataRow, type JsonValue, kindOf, type RowFault } from './row.js';
import { canonicalJson } from './row-hash.js';

export interface PreferenceRow extends DataRow {
  /** Absent where the answers are texts that hold it: where it ends can't be told. */
  readonly prompt?: TextOrMessages;
  /** What follows the prompt. */
  readonly chosen: TextOrMessages;
  readonly rejected: TextOrMessages;
}

type Messages = readonly ChatMessage[];

/**
 * Of whole conversations, the prompt is what both begin with: the messages before the first that differ. A prompt that stands beside
 * them as a text, or whose messages they repeat, isn't there twice.
 */
export function preferenceRow(row: DataRow, columns: FieldColumns): Checked<PreferenceRow> {
  const [first, second] = [findField(row.row, 'chosen', columns), findField(row.row, 'rejected', columns)];
  const chosen = checkTextOrMessages(first.value, first.column);
  if ('fault' in chosen) return chosen;
  const rejected = checkTextOrMessages(second.value, second.column);
  if ('fault' in rejected) return rejected;
  const given = promptOf(row, columns);
  if ('fault' in given) return given;

  const names = { chosen: first.column, rejected: second.column };
  if (isSame(chosen.value, rejected.value)) {
    const expected = `another answer than ${names.chosen}`;
    return { fault: { field: names.rejected, expected, got: 'the same', remedy: 'leave out rows without preference' } };
  }
  if (typeof chosen.value === 'string' || typeof rejected.value === 'string') {
    if (typeof chosen.value !== typeof rejected.value) {
      const expected = `${typeof chosen.value === 'string' ? 'a text' : 'messages'}, as ${names.chosen} is`;
      return { fault: { field: names.rejected, expected, got: kindOf(rejected.value) } };
    }
    return { value: { ...row, ...given.value, chosen: chosen.value, rejected: rejected.value } };
  }
  const parts = partsOf(chosen.value, rejected.value, given.value.prompt);
  if (parts.prompt.length === 0) {
    const expected = 'a prompt, or conversations that begin alike';
    return { fault: { field: names.chosen, expected, got: 'answers of which the first messages differ' } };
  }
  for (const side of ['chosen', 'rejected'] as const) {
    const fault = answerFault(parts[side][0], `${names[side]}[${parts.from}]`);
    if (fault !== undefined) return { fault };
  }
  const { prompt } = parts;
  return { value: { ...row, prompt, chosen: parts.chosen, rejected: parts.rejected } };
}

function promptOf({ row }: DataRow, columns: FieldColumns): Checked<{ readonly prompt?: TextOrMessages }> {
  const { column, value } = findField(row, 'prompt', columns);
  if (value === undefined || value === null) return { value: {} };
  const prompt = checkTextOrMessages(value, column);
  return 'fault' in prompt ? prompt : { value: { prompt: prompt.value } };
}

interface Parts {
  readonly prompt: TextOrMessages;
  readonly chosen: Messages;
  readonly rejected: Messages;
  /** Messages that were left out of the answers. */
  readonly from: number;
}

function partsOf(chosen: Messages, rejected: Messages, given: TextOrMessages | undefined): Parts {
  const differ = chosen.findIndex((message, i) => !isSame(message, rejected[i]));
  const common = differ === -1 ? chosen.length : differ;
  const isTold = given !== undefined && (typeof given !== 'string' || chosen[0]?.role === 'assistant');
  if (!isTold) {
    return {
      prompt: chosen.slice(0, common),
      chosen: chosen.slice(common),
      rejected: rejected.slice(common),
      from: common,
    };
  }
  const isRepeated =
    typeof given !== 'string' && given.length <= common && given.every((message, i) => isSame(message, chosen[i]));
  const from = isRepeated ? given.length : 0;
  return { prompt: given, chosen: chosen.slice(from), rejected: rejected.slice(from), from };
}

function answerFault(first: ChatMessage | undefined, field: string): RowFault | undefined {
  const expected = 'an answer of the assistant to the same prompt';
  if (first === undefined) return { field, expected, got: 'nothing' };
  return first.role === 'assistant' ? undefined : { field: `${field}.role`, expected, got: first.role };
}

function isSame(a: unknown, b: unknown): boolean {
  // True: both are of a row, which is JSON.
  return a !== undefined && b !== undefined && canonicalJson(a as JsonValue) === canonicalJson(b as JsonValue);
}
