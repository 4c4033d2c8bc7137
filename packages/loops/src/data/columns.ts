/** The fields that formats are made of, and the columns of a file in which they lie. */
import { complaint } from '@loopwright/protocol';
import { asObject, ownField } from './messages-field.js';
import { type JsonRow, type JsonValue, kindOf } from './row.js';

/** Fields of the formats, by which columns of other names can be mapped. */
export const fieldNames = [
  'messages',
  'tools',
  'prompt',
  'completion',
  'chosen',
  'rejected',
  'label',
  'answer',
] as const;

export type FieldName = (typeof fieldNames)[number];

/** The column of each field that the file names otherwise; `extra.answer` is a member of a column. */
export type FieldColumns = Readonly<Partial<Record<FieldName, string>>>;

/** A value, and the column that it was found in, or would have been. */
export interface FoundField {
  readonly column: string;
  /** Undefined where the row has no such column. */
  readonly value: JsonValue | undefined;
}

/** Where a field lies when nothing is mapped: the first that is there counts. */
const usualColumns: Readonly<Partial<Record<FieldName, readonly string[]>>> = {
  answer: ['answer', 'reward_model.ground_truth', 'extra_info.answer'],
};

/** A field of a row. */
export function findField(row: JsonRow, field: FieldName, columns: FieldColumns): FoundField {
  const mapped = columns[field];
  const places = mapped === undefined ? (usualColumns[field] ?? [field]) : [mapped];
  for (const column of places) {
    const value = readColumn(row, column);
    if (value !== undefined) return { column, value };
  }
  return { column: places[0] ?? field, value: undefined };
}

/** The task of a row to be graded: `prompt`, or `question` as sets of problems name it. */
export function findPrompt(row: JsonRow, columns: FieldColumns): FoundField {
  const prompt = findField(row, 'prompt', columns);
  if (prompt.value !== undefined || columns.prompt !== undefined) return prompt;
  return { column: 'question', value: ownField(row, 'question') };
}

/** The value that a user names: a column, or a field that is mapped to one. */
export function readNamed(row: JsonRow, name: string, columns: FieldColumns): JsonValue | undefined {
  const mapped = Object.hasOwn(columns, name) ? columns[name as FieldName] : undefined; // true: its own key
  return readColumn(row, mapped ?? name);
}

/** A column by its whole name or, where there is none, a member by its path. */
function readColumn(row: JsonRow, column: string): JsonValue | undefined {
  if (Object.hasOwn(row, column)) return row[column];
  let value: JsonValue | undefined = row;
  for (const name of column.split('.')) {
    const fields: JsonRow | undefined = asObject(value);
    if (fields === undefined) return undefined;
    value = ownField(fields, name);
  }
  return value;
}

/** @throws `invalid_argument` for fields that no format has, and columns that are no names */
export function checkColumns(fields: unknown): FieldColumns {
  if (fields === undefined) return {};
  const expected = 'the columns of fields by name, such as { prompt: "problem", answer: "solution" }';
  if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
    throw complaint({ field: 'fields', expected, got: kindOf(fields) });
  }
  const known: ReadonlySet<string> = new Set(fieldNames);
  for (const [name, column] of Object.entries(fields)) {
    const field = `fields.${name}`;
    if (!known.has(name)) throw complaint({ field, expected: `one of ${fieldNames.join(', ')}`, got: name });
    if (typeof column !== 'string' || column === '') {
      throw complaint({ field, expected: 'the name of a column', got: kindOf(column) });
    }
  }
  return fields; // true: each was checked
}
