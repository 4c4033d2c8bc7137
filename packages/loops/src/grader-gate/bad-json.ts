/** A JSON answer with one value changed. */
import type { JsonValue } from '../data/row.js';

type Path = readonly (string | number)[];

/**
 * The completion with the first value of the right answer changed in it, in the form that it had; undefined where either is
 * no JSON object or list, or the completion has no such value.
 */
export function alteredJson(text: string, answer: string): string | undefined {
  const gold = parsed(answer);
  const [body = text] = /(?<=```(?:json)?\s*\n)[^`]*?(?=\n```)/.exec(text) ?? [];
  const given = parsed(body);
  if (gold === undefined || given === undefined) return undefined;
  const path = firstLeaf(gold);
  const changed = path === undefined ? undefined : changedAt(given, path);
  return changed === undefined ? undefined : text.replace(body, () => JSON.stringify(changed));
}

function parsed(text: string): JsonValue | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as JsonValue) : undefined; // true: JSON.parse made it
  } catch {
    return undefined;
  }
}

function firstLeaf(value: JsonValue): Path | undefined {
  if (typeof value !== 'object' || value === null) return [];
  for (const [key, inner] of entriesOf(value)) {
    const path = firstLeaf(inner);
    if (path !== undefined) return [key, ...path];
  }
  return undefined;
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
