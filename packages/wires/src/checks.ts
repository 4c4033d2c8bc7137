/** Hand checks of JSON values, for hot paths and for code that must stay small. Every refusal names its field and never shows content. */
import { complaint } from '@loopwright/protocol';

export type JsonObject = Readonly<Record<string, unknown>>;

/** What a value is, without saying what is in it: type, length, or the number. */
export function describeValue(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return `an array of ${value.length}`;
  if (ArrayBuffer.isView(value)) return 'a typed array';
  switch (typeof value) {
    case 'string':
      return `a string of ${value.length} characters`;
    case 'number':
    case 'boolean':
    case 'bigint':
      return String(value);
    default:
      return `an ${typeof value}`;
  }
}

/** A key from outside, fit for a message: printable and short. */
export function showKey(key: string): string {
  const plain = key.replace(/[^\w./:-]/g, '?');
  return plain.length > 64 ? `${plain.slice(0, 64)}…` : plain;
}

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function objectAt(value: unknown, field: string): JsonObject {
  if (!isObject(value)) throw complaint({ field, expected: 'an object', got: describeValue(value) });
  return value;
}

/** @throws `invalid_argument` naming the first key that is not allowed */
export function refuseOtherKeys(object: JsonObject, allowed: readonly string[], field: string): void {
  for (const key in object) {
    if (!allowed.includes(key)) {
      throw complaint({
        field: `${field}.${showKey(key)}`,
        expected: `one of ${allowed.join(', ')}`,
        got: 'an unknown key',
      });
    }
  }
}

export interface Range {
  readonly min: number;
  readonly max: number;
  /** The minimum itself is refused. */
  readonly above?: boolean;
}

function rangeText({ min, max, above = false }: Range): string {
  return above ? `above ${min} and at most ${max}` : `from ${min} to ${max}`;
}

export function numberAt(value: unknown, field: string, range: Range): number {
  const fits =
    typeof value === 'number' &&
    Number.isFinite(value) &&
    (range.above === true ? value > range.min : value >= range.min) &&
    value <= range.max;
  if (!fits) throw complaint({ field, expected: `a number ${rangeText(range)}`, got: describeValue(value) });
  return value;
}

export function integerAt(value: unknown, field: string, range: Range): number {
  if (!Number.isSafeInteger(value)) {
    throw complaint({ field, expected: `an integer ${rangeText(range)}`, got: describeValue(value) });
  }
  return numberAt(value, field, range);
}

export function booleanAt(value: unknown, field: string): boolean {
  if (typeof value !== 'boolean') throw complaint({ field, expected: 'true or false', got: describeValue(value) });
  return value;
}

export interface TextRule {
  readonly min?: number;
  readonly max: number;
  readonly pattern?: RegExp;
}

export function stringAt(value: unknown, field: string, { min = 0, max, pattern }: TextRule): string {
  if (typeof value !== 'string' || value.length < min || value.length > max) {
    throw complaint({ field, expected: `a string of ${min} to ${max} characters`, got: describeValue(value) });
  }
  if (pattern !== undefined && !pattern.test(value)) {
    throw complaint({ field, expected: `a string matching ${pattern.source}`, got: describeValue(value) });
  }
  return value;
}

export function arrayAt(value: unknown, field: string, { min = 0, max = Number.MAX_SAFE_INTEGER } = {}): unknown[] {
  if (!Array.isArray(value) || value.length < min || value.length > max) {
    const size = max === Number.MAX_SAFE_INTEGER ? `at least ${min}` : `${min} to ${max}`;
    throw complaint({ field, expected: `an array of ${size}`, got: describeValue(value) });
  }
  return value;
}

/** `value[key]`, checked by `read` when it is there; null counts as absent. */
export function optional<T>(
  object: JsonObject,
  key: string,
  field: string,
  read: (value: unknown, field: string) => T,
): T | undefined {
  const value = object[key];
  return value === undefined || value === null ? undefined : read(value, `${field}.${key}`);
}

/** The single member of a union. @throws `invalid_argument` naming `field` when there is none, more than one, or an unknown one */
export function onlyMember<Name extends string>(
  value: unknown,
  members: readonly Name[],
  field: string,
): { readonly name: Name; readonly config: JsonObject; readonly field: string } {
  const union = objectAt(value, field);
  const present = Object.keys(union).filter((key) => union[key] !== undefined && union[key] !== null);
  const name = members.find((member) => member === present[0]);
  if (name === undefined || present.length !== 1) {
    throw complaint({
      field,
      expected: `exactly one of ${members.join(', ')}`,
      got: present.length === 0 ? 'none' : present.slice(0, 4).map(showKey).join(', '),
    });
  }
  return { name, config: objectAt(union[name], `${field}.${name}`), field: `${field}.${name}` };
}

/**
 * Parses a request or response body.
 * NaN and Infinity, which Python writes into JSON, are read as null, so that the check of the field names the position.
 *
 * @throws `invalid_argument` for what is not JSON, without quoting it
 */
export function parseJson(text: string, field = 'body'): unknown {
  try {
    return JSON.parse(text);
  } catch {
    try {
      return JSON.parse(replaceOutsideStrings(text, (part) => part.replace(looseNumber, 'null')));
    } catch {
      throw complaint({ field, expected: 'JSON', got: `${text.length} characters that do not parse` });
    }
  }
}

/** NaN and the infinities, which are read as null. */
const looseNumber = /-?\bInfinity\b|\bNaN\b/g;

/** Changes JSON text outside of its strings. One pass: a pattern for strings would try an open one again from each of its quotes. */
export function replaceOutsideStrings(text: string, replace: (part: string) => string): string {
  const parts: string[] = [];
  let at = 0;
  while (at < text.length) {
    const quote = text.indexOf('"', at);
    const open = quote < 0 ? text.length : quote;
    parts.push(replace(text.slice(at, open)));
    let end = open + 1;
    while (end < text.length && text[end] !== '"') end += text[end] === '\\' ? 2 : 1;
    parts.push(text.slice(open, end + 1));
    at = end + 1;
  }
  return parts.join('');
}

/** The protocol's spelling of a number for JSON: non-finite ones become strings. */
export function toWireNumber(value: number): number | string {
  return Number.isFinite(value) ? value : String(value);
}

/** Reads what {@link toWireNumber} wrote; null reads as NaN. */
export function fromWireNumber(value: unknown, field: string): number {
  if (typeof value === 'number') return value;
  if (value === null || value === 'NaN') return Number.NaN;
  if (value === 'Infinity') return Number.POSITIVE_INFINITY;
  if (value === '-Infinity') return Number.NEGATIVE_INFINITY;
  throw complaint({ field, expected: 'a number', got: describeValue(value) });
}

/** Numbers for JSON; the usual finite array is copied without a second pass. */
export function toWireNumbers(values: ArrayLike<number>): (number | string)[] {
  const numbers: (number | string)[] = new Array(values.length);
  for (let i = 0; i < values.length; i++) {
    const value = values[i]!;
    numbers[i] = Number.isFinite(value) ? value : String(value);
  }
  return numbers;
}
