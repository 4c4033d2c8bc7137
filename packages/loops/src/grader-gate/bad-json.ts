/** A JSON answer with values changed. */
import type { JsonValue } from '../data/row.js';

type Path = readonly (string | number)[];

/**
 * The completion with the first value of the right answer changed in it, and with every value changed, in the form that it had: the one finds a
 * grader that leaves a value out, the other tells components of the values from those of the form. None where either is no JSON object or list, or
 * the completion has no such value.
 */
export function alteredJson(text: string, answer: string): readonly string[] {
  const gold = parsed(answer);
  const [body = text] = /(?<=```(?:json)?\s*\n)[^`]*?(?=\n```)/.exec(text) ?? [];
  const given = parsed(body);
  if (gold === undefined || given === undefined) return [];
  const paths = leaves(gold).filter((path) => changedAt(given, path) !== undefined);
  const [first] = paths;
  if (first === undefined) return [];
  const all = paths.reduce<JsonValue>((value, path) => changedAt(value, path) ?? value, given);
  const changed = [changedAt(given, first), ...(paths.length > 1 ? [all] : [])];
  return changed.map((value) => text.replace(body, () => JSON.stringify(value)));
}

function parsed(text: string): JsonValue | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as JsonValue) : undefined; // true: JSON.parse made it
  } catch {
    return undefined;
  }
}

function leaves(value: JsonValue): Path[] {
  if (typeof value !== 'object' || value === null) return [[]];
  return entriesOf(value).flatMap(([key, inner]) => leaves(inner).map((path): Path => [key, ...path]));
}

function changedAt(value: JsonValue, [key, ...rest]: Path): JsonValue | undefined {
  if (key === undefined) return otherValue(value);
  if (typeof value !== 'object' || value === null) return undefined;
  const inner = entriesOf(value).find(([name]) => name === key)?.[1];
  const changed = inner === undefined ? undefined : changedAt(inner, rest);
  if (changed === undefined) return undefined;
  const entries = entriesOf(value).map(([name, each]) => [name, name === key ? changed : each] as const);
  return Array.isArray(value) ? entries.map(([, each]) => each) : Object.fromEntries(entries);
}

function entriesOf(value: object): (readonly [string | number, JsonValue])[] {
  // true: its members are JSON, as it is
  return Array.isArray(value)
    ? value.map((each, i) => [i, each as JsonValue])
    : (Object.entries(value) as [string, JsonValue][]);
}

function otherValue(value: JsonValue): JsonValue {
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  return typeof value === 'string' ? `${value}x` : 'x';
}
