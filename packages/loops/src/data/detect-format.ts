/** Which format a data set has, by the fields of its rows: said with the evidence, and refused where it isn't one. */
import { complaint } from '@loopwright/protocol';
import type { Dataset } from './dataset.js';
import type { DataRow, JsonRow, RowPlace } from './row.js';
import { answerOf, type DataFormat } from './typed-rows.js';

export interface DetectedFormat {
  readonly format: DataFormat;
  /** Fields that every row that was looked at has. */
  readonly fields: readonly string[];
  readonly rowsChecked: number;
  /** Lines among them that couldn't be read as rows: a reading will say which. */
  readonly errorCount: number;
}

const maxRows = 1000;
const remedy = "name the format yourself, as in data.as('chat'): rows of another form are then row errors";

/** Formats whose fields a row has. */
function formatsOf(row: JsonRow): { readonly format: DataFormat; readonly fields: readonly string[] }[] {
  const has = (...names: readonly string[]): boolean => names.every((name) => Object.hasOwn(row, name));
  const found: { format: DataFormat; fields: string[] }[] = [];
  if (has('messages')) found.push({ format: 'chat', fields: ['messages'] });
  if (has('chosen', 'rejected')) found.push({ format: 'preference', fields: ['chosen', 'rejected'] });
  if (has('prompt', 'completion')) {
    if (has('label')) found.push({ format: 'kto', fields: ['prompt', 'completion', 'label'] });
    else found.push({ format: 'prompt_completion', fields: ['prompt', 'completion'] });
  }
  const [answer, value] = answerOf(row);
  const prompt = has('prompt') ? 'prompt' : 'question';
  if (has(prompt) && value !== undefined) found.push({ format: 'rl_prompt', fields: [prompt, answer] });
  return found;
}

/** @throws `data_invalid` */
export async function detectFormat<R extends DataRow>(
  data: Dataset<R>,
  { signal }: { readonly signal?: AbortSignal },
): Promise<DetectedFormat> {
  const rows = data.with({ onReport: () => undefined }).read({ onRowError: 'skip', ...(signal ? { signal } : {}) });
  const field = data.files.join(', ');
  const seen = new Map<DataFormat, { readonly fields: readonly string[]; readonly at: RowPlace; count: number }>();
  let rowsChecked = 0;
  for await (const { row, at } of rows) {
    rowsChecked += 1;
    const found = formatsOf(row);
    const [only] = found;
    if (only === undefined) {
      const expected =
        'messages; prompt and completion (and label); chosen and rejected; or prompt or question and answer';
      throw complaint({ code: 'data_invalid', field, expected, got: `line ${at.line} with none of them`, remedy });
    }
    if (found.length > 1) {
      const got = `line ${at.line}, which could be ${found.map(({ format }) => format).join(' or ')}`;
      throw complaint({ code: 'data_invalid', field, expected: 'rows of one format', got, remedy });
    }
    const before = seen.get(only.format);
    if (before === undefined) seen.set(only.format, { fields: only.fields, at, count: 1 });
    else before.count += 1;
    if (rowsChecked === maxRows) break;
  }
  const [first, ...others] = seen;
  if (first === undefined) {
    throw complaint({ code: 'data_invalid', field, expected: 'rows', got: 'none', remedy: 'check the file' });
  }
  if (others.length > 0) {
    const got = [...seen].map(([format, { count, at }]) => `${count} of ${format} (first: line ${at.line})`).join(', ');
    throw complaint({ code: 'data_invalid', field, expected: 'rows of one format', got, remedy });
  }
  const [format, { fields }] = first;
  return { format, fields, rowsChecked, errorCount: rows.report().errorCount };
}
