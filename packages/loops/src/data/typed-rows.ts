/** Rows of the formats that trainers use, checked field by field. */
import type { ChatMessage } from '@loopwright/text';
import { asObject, checkMessages, checkTextOrMessages, ownField, type TextOrMessages } from './messages-field.js';
import { type Checked, type DataRow, type JsonRow, type JsonValue, kindOf } from './row.js';

/** A conversation to imitate. */
export interface ChatRow extends DataRow {
  readonly messages: readonly ChatMessage[];
  readonly tools?: readonly JsonValue[];
}

export interface PromptCompletionRow extends DataRow {
  readonly prompt: TextOrMessages;
  readonly completion: TextOrMessages;
}

export interface PreferenceRow extends DataRow {
  /** Absent where both answers hold the whole conversation. */
  readonly prompt?: TextOrMessages;
  readonly chosen: TextOrMessages;
  readonly rejected: TextOrMessages;
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

type Check<F extends DataFormat> = (row: DataRow) => Checked<FormatRows[F]>;

const checks: { readonly [F in DataFormat]: Check<F> } = {
  chat(row) {
    const messages = checkMessages(ownField(row.row, 'messages'), 'messages');
    if ('fault' in messages) return messages;
    const tools = ownField(row.row, 'tools');
    if (tools === undefined || tools === null) return { value: { ...row, messages: messages.value } };
    if (!Array.isArray(tools)) return { fault: { field: 'tools', expected: 'a list of tools', got: kindOf(tools) } };
    return { value: { ...row, messages: messages.value, tools } };
  },
  prompt_completion: (row) => both(row, 'prompt', 'completion'),
  preference(row) {
    const answers = both(row, 'chosen', 'rejected');
    if ('fault' in answers || (row.row.prompt ?? null) === null) return answers;
    const prompt = checkTextOrMessages(ownField(row.row, 'prompt'), 'prompt');
    return 'fault' in prompt ? prompt : { value: { ...answers.value, prompt: prompt.value } };
  },
  kto(row) {
    const texts = both(row, 'prompt', 'completion');
    if ('fault' in texts) return texts;
    const label = ownField(row.row, 'label');
    if (typeof label !== 'boolean') return { fault: { field: 'label', expected: 'true or false', got: kindOf(label) } };
    return { value: { ...texts.value, label } };
  },
  rl_prompt(row) {
    const name = Object.hasOwn(row.row, 'prompt') ? 'prompt' : 'question';
    const prompt = checkTextOrMessages(ownField(row.row, name), name);
    if ('fault' in prompt) return prompt;
    const [field, value] = answerOf(row.row);
    // Never the text of a missing value: null is no answer.
    if (typeof value === 'number') return { value: { ...row, prompt: prompt.value, answer: String(value) } };
    if (typeof value === 'string' && value.trim() !== '') {
      return { value: { ...row, prompt: prompt.value, answer: value } };
    }
    return { fault: { field, expected: 'a text or a number to compare answers with', got: kindOf(value) } };
  },
};

/** The check of a format. */
export function typedRow<F extends DataFormat>(format: F): Check<F> {
  return checks[format];
}

function both<A extends string, B extends string>(
  row: DataRow,
  a: A,
  b: B,
): Checked<DataRow & Readonly<Record<A | B, TextOrMessages>>> {
  const first = checkTextOrMessages(ownField(row.row, a), a);
  if ('fault' in first) return first;
  const second = checkTextOrMessages(ownField(row.row, b), b);
  if ('fault' in second) return second;
  const fields = { [a]: first.value, [b]: second.value } as Readonly<Record<A | B, TextOrMessages>>; // true: both are there
  return { value: { ...row, ...fields } };
}

/** Where the answer lies, as sets of problems name it: `answer`, or in `reward_model` or `extra_info` beside a prompt. */
export function answerOf(row: JsonRow): readonly [field: string, value: JsonValue | undefined] {
  const places = [
    ['answer', row],
    ['reward_model.ground_truth', asObject(ownField(row, 'reward_model'))],
    ['extra_info.answer', asObject(ownField(row, 'extra_info'))],
  ] as const;
  for (const [field, holder] of places) {
    const name = field.slice(field.indexOf('.') + 1);
    if (holder !== undefined && Object.hasOwn(holder, name)) return [field, ownField(holder, name)];
  }
  return ['answer', undefined];
}
