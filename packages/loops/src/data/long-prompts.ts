/** Rows whose prompts are longer than a limit, listed before a run meets them. */
import { complaint } from '@loopwright/protocol';
import { findField, findPrompt } from './columns.js';
import type { Dataset } from './dataset.js';
import { checkTextOrMessages, type TextOrMessages } from './messages-field.js';
import type { DataRow, RowPlace } from './row.js';

export interface LongPromptsOptions {
  /** In tokens: the context of the model, less those that it is to write. */
  readonly maxTokens: number;
  /** Tokens of a prompt as the run will render it, such as `(prompt) => tokenizer.encode(String(prompt)).length`. */
  readonly countTokens: (prompt: TextOrMessages) => number;
  readonly signal?: AbortSignal;
}

export interface LongPrompts {
  readonly rows: number;
  /** Rows of which no prompt was found: none of `prompt`, `question` and `messages`, or another form. */
  readonly withoutPrompt: number;
  /** Rows with more than `maxTokens`. */
  readonly longCount: number;
  /** The first hundred of them. */
  readonly long: readonly { readonly id: string; readonly at: RowPlace; readonly tokens: number }[];
}

const maxListed = 100;

/**
 * Counts the tokens of each prompt; of a conversation, of what comes before the first answer.
 *
 * @throws `invalid_argument`, and what reading throws
 * @example
 * const { longCount, long } = await findLongPrompts(data, { maxTokens: 1024, countTokens: (prompt) => tokenizer.encode(String(prompt)).length });
 */
export async function findLongPrompts<R extends DataRow>(
  data: Dataset<R>,
  { maxTokens, countTokens, signal }: LongPromptsOptions,
): Promise<LongPrompts> {
  if (!Number.isSafeInteger(maxTokens) || maxTokens < 1) {
    throw complaint({ field: 'maxTokens', expected: 'a whole number from 1', got: String(maxTokens) });
  }
  const long: { readonly id: string; readonly at: RowPlace; readonly tokens: number }[] = [];
  let [rows, withoutPrompt, longCount] = [0, 0, 0];
  for await (const row of data.read(signal === undefined ? {} : { signal })) {
    rows += 1;
    const prompt = promptOf(row, data);
    if (prompt === undefined) {
      withoutPrompt += 1;
      continue;
    }
    const tokens = countTokens(prompt);
    if (tokens <= maxTokens) continue;
    longCount += 1;
    if (long.length < maxListed) long.push({ id: row.id, at: row.at, tokens });
  }
  return { rows, withoutPrompt, longCount, long };
}

function promptOf<R extends DataRow>({ row }: DataRow, { parts }: Dataset<R>): TextOrMessages | undefined {
  const { fields = {} } = parts;
  const task = findPrompt(row, fields);
  const found = task.value === undefined ? findField(row, 'messages', fields) : task;
  const checked = checkTextOrMessages(found.value, found.column);
  if ('fault' in checked) return undefined;
  if (typeof checked.value === 'string' || task.value !== undefined) return checked.value;
  const answer = checked.value.findIndex(({ role }) => role === 'assistant');
  return answer === -1 ? checked.value : checked.value.slice(0, answer);
}
