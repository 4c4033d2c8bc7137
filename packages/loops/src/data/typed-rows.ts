/** Rows of the formats that trainers use, checked field by field. */
import { complaint } from '@loopwright/protocol';
import type { ChatMessage } from '@loopwright/text';
import { type FieldColumns, type FieldName, findField, findPrompt } from './columns.js';
import { checkMessages, checkTextOrMessages, type TextOrMessages } from './messages-field.js';
import { type PreferenceRow, preferenceRow } from './preference-row.js';
import { type Checked, type DataRow, type JsonValue, kindOf } from './row.js';

/** A conversation to imitate. */
export interface ChatRow extends DataRow {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly JsonValue[];
}

export interface PromptCompletionRow extends DataRow {
  readonly prompt: TextOrMessages;
  readonly completion: TextOrMessages;
}

/** An answer with a thumb up or down, as KTO learns from. */
export interface KtoRow extends DataRow {
  readonly prompt: TextOrMessages;
  readonly completion: TextOrMessages;
  readonly label: boolean;
}

/** A task with the answer that graders compare with. */
export interface RlPromptRow extends DataRow {
  readonly prompt: TextOrMessages;
  readonly answer: string;
}

export interface FormatRows {
  readonly chat: ChatRow;
  readonly prompt_completion: PromptCompletionRow;
  readonly preference: PreferenceRow;
  readonly kto: KtoRow;
  readonly rl_prompt: RlPromptRow;
}

export type DataFormat = keyof FormatRows;

type Check<F extends DataFormat> = (row: DataRow, columns: FieldColumns) => Checked<FormatRows[F]>;

const checks: { readonly [F in DataFormat]: Check<F> } = {
  chat(row, columns) {
    const { column, value } = findField(row.row, 'messages', columns);
    const messages = checkMessages(value, column);
    if ('fault' in messages) return messages;
    const { column: field, value: tools } = findField(row.row, 'tools', columns);
    if (tools === undefined || tools === null) return { value: { ...row, messages: messages.value } };
    if (!Array.isArray(tools)) return { fault: { field, expected: 'a list of tools', got: kindOf(tools) } };
    return { value: { ...row, messages: messages.value, tools } };
  },
  prompt_completion: promptAndCompletion,
  preference: preferenceRow,
  kto(row, columns) {
    const texts = promptAndCompletion(row, columns);
    if ('fault' in texts) return texts;
    const { column: field, value: label } = findField(row.row, 'label', columns);
    if (typeof label !== 'boolean') return { fault: { field, expected: 'true or false', got: kindOf(label) } };
    return { value: { ...texts.value, label } };
  },
  rl_prompt(row, columns) {
    const task = findPrompt(row.row, columns);
    const prompt = checkTextOrMessages(task.value, task.column);
    if ('fault' in prompt) return prompt;
    const { column: field, value } = findField(row.row, 'answer', columns);
    // Never the text of a missing value: null is no answer.
    if (typeof value === 'number') return { value: { ...row, prompt: prompt.value, answer: String(value) } };
    if (typeof value === 'string' && value.trim() !== '') {
      return { value: { ...row, prompt: prompt.value, answer: value } };
    }
    return { fault: { field, expected: 'a text or a number to compare answers with', got: kindOf(value) } };
  },
};

/** The check of a format. @throws `invalid_argument` for one that is none */
export function typedRow<F extends DataFormat>(format: F): Check<F> {
  if (Object.hasOwn(checks, format)) return checks[format];
  throw complaint({ field: 'format', expected: `one of ${Object.keys(checks).join(', ')}`, got: String(format) });
}

/** Fields that rows of a format must have, and those that they may have. */
export const formatFields: {
  readonly [F in DataFormat]: { readonly needed: readonly FieldName[]; readonly others: readonly FieldName[] };
} = {
  chat: { needed: ['messages'], others: ['tools'] },
  prompt_completion: { needed: ['prompt', 'completion'], others: [] },
  preference: { needed: ['chosen', 'rejected'], others: ['prompt'] },
  kto: { needed: ['prompt', 'completion', 'label'], others: [] },
  rl_prompt: { needed: ['prompt', 'answer'], others: [] },
};

function promptAndCompletion(row: DataRow, columns: FieldColumns): Checked<PromptCompletionRow> {
  const texts: TextOrMessages[] = [];
  for (const name of ['prompt', 'completion'] as const) {
    const { column, value } = findField(row.row, name, columns);
    const text = checkTextOrMessages(value, column);
    if ('fault' in text) return text;
    texts.push(text.value);
  }
  const [prompt = '', completion = ''] = texts;
  return { value: { ...row, prompt, completion } };
}
