/** Which format a data set has, by the fields of its rows: said with the evidence, and refused where it isn't one. */
import { complaint } from '@loopwright/protocol';
import { type FieldColumns, findField, findPrompt } from './columns.js';
import type { Dataset } from './dataset.js';
import type { DataRow, JsonRow, RowPlace } from './row.js';
import { type DataFormat, formatFields } from './typed-rows.js';

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

interface FormatFound {
  readonly format: DataFormat;
  /** Columns in which its fields lie. */
  readonly fields: readonly string[];
}

/** Formats whose fields a row has; where the user says what columns mean, those that know the fields which were named. */
function formatsOf(row: JsonRow, columns: FieldColumns): FormatFound[] {
  const found: FormatFound[] = [];
  for (const [name, { needed }] of Object.entries(formatFields)) {
    const format = name as DataFormat; // true: a key of the table
    const fields = needed.map((field) =>
      format === 'rl_prompt' && field === 'prompt' ? findPrompt(row, columns) : findField(row, field, columns),
    );
    if (fields.every(({ value }) => value !== undefined)) {
      found.push({ format, fields: fields.map(({ column }) => column) });
    }
  }
  // Rows with a label have all that prompt_completion needs.
  const isKto = found.some(({ format }) => format === 'kto');
  const named = Object.keys(columns);
  const knows = ({ format }: FormatFound): boolean => {
    const { needed, others } = formatFields[format];
    const fields: readonly string[] = [...needed, ...others];
    return named.every((field) => fields.includes(field));
  };
  const left = found.filter(({ format }) => !(isKto && format === 'prompt_completion'));
  const meant = left.filter(knows);
  return meant.length > 0 ? meant : left;
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
    const found = formatsOf(row, data.parts.fields ?? {});
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
