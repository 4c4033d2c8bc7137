/**
 * JSON whose numbers and keys stay as they were written. JavaScript reads 2.0 as 2, 12345678901234567890 as another number and 1e400 as infinity, and puts keys
 * that look like numbers first; a chat that is rendered again has to say what the model wrote.
 */
import { jsonMembers, splitAtCommas } from '../turns/json-extent.js';
import { pythonFloat, pythonInteger } from './python-json.js';

/** A number that JavaScript can't print as it was written. */
export class JsonNumber {
  /** As JSON has it. */
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Python reads it as an int: without point and exponent. */
  get isInteger(): boolean {
    return /^-?\d+$/.test(this.text);
  }
}

/** An object whose keys JavaScript would put into another order. */
export class JsonObject {
  readonly entries: readonly (readonly [key: string, value: ExactJson])[];

  constructor(entries: JsonObject['entries']) {
    this.entries = entries;
  }
}

/** Plain data, but for what that can't hold. */
export type ExactJson =
  | null
  | boolean
  | number
  | string
  | JsonNumber
  | JsonObject
  | readonly ExactJson[]
  | { readonly [key: string]: ExactJson };

/**
 * Plain data where that prints as `text` says, and {@link JsonNumber} and {@link JsonObject} where it wouldn't. Of a key that stands twice the last counts.
 *
 * @throws SyntaxError, as `JSON.parse`
 */
export function parseExactJson(text: string): ExactJson {
  const plain: unknown = JSON.parse(text);
  return needsCare(text) ? read(text.trim()) : (plain as ExactJson); // true: what JSON.parse gives
}

/** Numbers with a point, an exponent, a sign or many digits, and keys of digits; found in strings too, which costs time alone. */
function needsCare(text: string): boolean {
  return /[\d.][eE]|\d\.\d|-0|\d{16}|"\d+"\s*:|"\\u003\d/.test(text);
}

/** @param text JSON that parses, without white space around it */
function read(text: string): ExactJson {
  switch (text[0]) {
    case '{':
      return object(jsonMembers(text).map(({ key, value }) => [key, read(value)] as const));
    case '[':
      return splitAtCommas(text.slice(1, -1)).map((item) => read(item.trim()));
    case '"':
    case 't':
    case 'f':
    case 'n':
      return JSON.parse(text) as ExactJson; // true: a string, boolean or null
    default:
      return number(text);
  }
}

function number(text: string): number | JsonNumber {
  const value = Number(text);
  const printed = Number.isInteger(value) ? pythonInteger(value) : pythonFloat(value);
  return printed === text ? value : new JsonNumber(text);
}

function object(entries: readonly (readonly [string, ExactJson])[]): ExactJson {
  const last = [...new Map(entries)];
  const record = Object.fromEntries(last);
  return Object.keys(record).every((key, i) => key === last[i]![0]) ? record : new JsonObject(last);
}

/** JSON on one line that `parseExactJson` reads as the same. */
export function printExactJson(value: ExactJson): string {
  if (value instanceof JsonNumber) return value.text;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${(value as readonly ExactJson[]).map(printExactJson).join(',')}]`; // true: an array
  const entries = value instanceof JsonObject ? value.entries : Object.entries(value);
  return `{${entries.map(([key, item]) => `${JSON.stringify(key)}:${printExactJson(item)}`).join(',')}}`;
}
