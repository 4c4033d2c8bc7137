/** Settings as they are kept: plain JSON, without secrets, clients and data. */
import type { JsonValue } from '../data/row.js';

const secret =
  /api[-_]?key|secret|passw(or)?d|authorization|credential|(access|auth|bearer|refresh|hf)[-_]?token|^token$/i;
export const redacted = '[redacted]';
/** Longer lists are data, not settings. */
const maxItems = 200;
const maxDepth = 12;

/**
 * A copy of any value that JSON can hold: functions and objects of classes by their names, lists of more than 200 by their length, and what a key calls a
 * secret (`apiKey`, `password`, `token` and the like) not at all. So the options of a loop can be handed over as they are.
 */
export function plainConfig(value: unknown): JsonValue {
  return plain(value, 0) ?? null;
}

function plain(value: unknown, depth: number): JsonValue | undefined {
  switch (typeof value) {
    case 'undefined':
      return undefined;
    case 'number':
      return Number.isFinite(value) ? value : String(value);
    case 'string':
    case 'boolean':
      return value;
    case 'bigint':
      return String(value);
    case 'symbol':
      return value.toString();
    case 'function':
      return value.name === '' ? '[function]' : `[function ${value.name}]`;
    default:
      return value === null ? null : plainObject(value as object, depth); // true: every other type has a case
  }
}

function plainObject(value: object, depth: number): JsonValue {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString();
  if (value instanceof URL) return `${value.origin}${value.pathname}`; // without user, password and query
  if (Array.isArray(value)) {
    if (value.length > maxItems || depth > maxDepth) return `[${value.length} items]`;
    return value.map((item) => plain(item, depth + 1) ?? null);
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return `[${value.constructor.name}]`;
  if (depth > maxDepth) return '[object]';
  const members = Object.entries(value).flatMap(([key, inner]): [string, JsonValue][] => {
    if (secret.test(key) && typeof inner !== 'number') return inner === undefined ? [] : [[key, redacted]];
    const kept = plain(inner, depth + 1);
    return kept === undefined ? [] : [[key, kept]];
  });
  return Object.fromEntries(members);
}

/** A command line without the values of options that are secrets. */
export function withoutSecrets(args: readonly string[]): string[] {
  return args.map((arg, i) => {
    const [name = '', ...rest] = arg.split('=');
    if (name.startsWith('-') && rest.length > 0 && secret.test(nameOf(name))) return `${name}=${redacted}`;
    const before = args[i - 1] ?? '';
    return before.startsWith('-') && !before.includes('=') && !arg.startsWith('-') && secret.test(nameOf(before))
      ? redacted
      : arg;
  });
}

function nameOf(option: string): string {
  return option.replace(/^-+/, '');
}
