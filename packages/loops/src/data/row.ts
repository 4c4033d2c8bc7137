/** The words of data sets: a row, where it lies, and what is wrong with one that can't be read. */
import { LoopwrightError } from '@loopwright/protocol';
import { escapeText } from '../escape-text.js';

/** What JSON can say. */
export type JsonValue = null | boolean | number | string | readonly JsonValue[] | { readonly [key: string]: JsonValue };

/** A record as it was written: a JSON object, or the columns of a Parquet row. */
export type JsonRow = Readonly<Record<string, JsonValue>>;

export interface RowPlace {
  /** As it was named when it was opened. */
  readonly file: string;
  /** From 1: the line of a JSONL file, the row of a Parquet file. */
  readonly line: number;
}

export interface DataRow {
  /** The hash of the content, or the value of the id field. */
  readonly id: string;
  readonly at: RowPlace;
  readonly row: JsonRow;
}

/** A record without the place that it was read from; anything else as it is. */
export function contentOf(row: unknown): unknown {
  return isDataRow(row) ? row.row : row;
}

function isDataRow(row: unknown): row is DataRow {
  return typeof row === 'object' && row !== null && 'id' in row && 'at' in row && 'row' in row;
}

/** Why a row can't be used. Nothing in it is content but `excerpt`. */
export interface RowError {
  readonly at: RowPlace & {
    /** From 1, in UTF-16 units of the line; where the place within the line is known. */
    readonly column?: number;
  };
  /** Path within the row, such as `messages[1].role`. */
  readonly field?: string;
  readonly expected: string;
  readonly got: string;
  readonly remedy?: string;
  /** Some characters of the line around the column, escaped. Not enumerable, so that logs and JSON don't take it along. */
  readonly excerpt?: string;
}

/** A fault of a row, before it is known where the row lies. */
export interface RowFault {
  /** From 0. */
  readonly index?: number;
  readonly field?: string;
  readonly expected: string;
  readonly got: string;
  readonly remedy?: string;
}

/** What a check makes of a row. */
export type Checked<T> = { readonly value: T } | { readonly fault: RowFault };

const excerptLength = 40;

/** Puts a fault in its place. @param text the line, for the excerpt */
export function rowError({ index, ...fault }: RowFault, at: RowPlace, text?: string): RowError {
  const error: RowError = { ...fault, at: index === undefined ? at : { ...at, column: index + 1 } };
  if (text === undefined) return error;
  const from = Math.max(0, (index ?? 0) - excerptLength / 2);
  const excerpt = escapeText(text.slice(from, from + excerptLength));
  return Object.defineProperty(error, 'excerpt', { value: excerpt, enumerable: false });
}

/** `train.jsonl, line 3, column 14, messages[0].role: expected …, got …`. */
export function rowErrorText({ at, field, expected, got }: RowError): string {
  const column = at.column === undefined ? '' : `, column ${at.column}`;
  return `${at.file}, line ${at.line}${column}${field === undefined ? '' : `, ${field}`}: expected ${expected}, got ${got}`;
}

const shownErrors = 5;
const commonRemedy = "mend the rows, or leave them out and have them counted: onRowError: 'skip'";

/** The error that a reading stops with. `details.rowErrors` has all of them. */
export function rowsInvalid(errors: readonly RowError[], { all }: { readonly all: boolean }): LoopwrightError {
  const [first] = errors;
  const lines = errors.slice(0, shownErrors).map(rowErrorText);
  const more = errors.length > shownErrors ? `\n… and ${errors.length - shownErrors} more` : '';
  const end = errors.length > 1 || all ? `\n${errors.length} rows can't be used${all ? '' : ' so far'}` : '';
  const remedy = first?.remedy ?? commonRemedy;
  const place = first === undefined ? '' : `${first.at.file}:${first.at.line}`;
  return new LoopwrightError({
    code: 'row_invalid',
    message: `${lines.join('\n')}${more}${end}; ${remedy}`,
    details: {
      field: first?.field === undefined ? place : `${place} ${first.field}`,
      expected: first?.expected ?? '',
      got: first?.got ?? '',
      remedy,
      rowErrors: errors,
    },
  });
}

/** What a value is, without saying it. */
export function kindOf(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'string') return value === '' ? 'an empty text' : `a text of ${value.length} characters`;
  if (typeof value === 'object') return 'an object';
  return `a ${typeof value}`;
}
