/** Values that cross a sandbox's boundary as text: JSON, with tags for what JSON lacks. */
import { complaint } from '@loopwright/protocol';

/**
 * Python's None, bool, int and float, str, bytes, list and tuple, dict, set; or JavaScript's own. Whole numbers beyond 2^53 come
 * as bigint. A dict with keys that are not text comes as a Map, every other as an object without a prototype's names.
 */
export type SandboxValue =
  | null
  | boolean
  | number
  | bigint
  | string
  | Uint8Array
  | readonly SandboxValue[]
  | ReadonlySet<SandboxValue>
  | ReadonlyMap<SandboxValue, SandboxValue>
  | { readonly [key: string]: SandboxValue };

/** As it crosses: arrays stand for lists, an object is a tag of one key. */
export type CrossingValue =
  | null
  | boolean
  | number
  | string
  | readonly CrossingValue[]
  | { readonly [tag: string]: unknown };

const maxDepth = 200;

/** @throws `invalid_argument` for what can't cross: functions, symbols, undefined, instances, cycles, more than 200 levels */
export function encodeValue(value: unknown, field: string, depth = 0): CrossingValue {
  const refuse = (got: string): never => {
    throw complaint({ field, expected: 'a value of JSON, a bigint, Map, Set or Uint8Array', got });
  };
  if (depth > maxDepth) return refuse(`more than ${maxDepth} levels, or a cycle`);
  const below = (item: unknown): CrossingValue => encodeValue(item, field, depth + 1);
  if (value === null || typeof value === 'boolean' || typeof value === 'string') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : { float: floatName(value) };
  if (typeof value === 'bigint') return { int: String(value) };
  if (Array.isArray(value)) return value.map(below);
  if (value instanceof Uint8Array) return { bytes: toHex(value) };
  if (value instanceof Set) return { set: [...value].map(below) };
  if (value instanceof Map) return { dict: [...value].map((pair) => pair.map(below)) };
  if (typeof value !== 'object') return refuse(typeof value);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return refuse('an instance of a class');
  return { dict: Object.entries(value).map(([key, item]) => [key, below(item)]) };
}

function floatName(value: number): string {
  return Number.isNaN(value) ? 'nan' : value > 0 ? 'inf' : '-inf';
}

function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function fromHex(text: string): Uint8Array {
  return Uint8Array.from({ length: text.length / 2 }, (_, i) => Number.parseInt(text.slice(2 * i, 2 * i + 2), 16));
}

/** Thrown for text that is no value: the program's doing, since it alone can have written it. */
export class MalformedValue extends Error {
  override readonly name = 'MalformedValue';
}

/** The value that crossed. Trusts nothing: what comes is written by the program. */
export function decodeValue(value: unknown, depth = 0): SandboxValue {
  if (depth > maxDepth) throw new MalformedValue(`more than ${maxDepth} levels`);
  const below = (item: unknown): SandboxValue => decodeValue(item, depth + 1);
  if (value === null || typeof value === 'boolean' || typeof value === 'string' || typeof value === 'number')
    return value;
  if (Array.isArray(value)) return value.map(below);
  if (typeof value !== 'object') throw new MalformedValue(typeof value);
  const [entry, ...more] = Object.entries(value);
  if (entry === undefined || more.length > 0) throw new MalformedValue('an object that is no tag');
  const [tag, content] = entry;
  if (typeof content === 'string') return decodeText(tag, content);
  if (!Array.isArray(content)) throw new MalformedValue(`tag ${tag}`);
  const items: readonly unknown[] = content;
  if (tag === 'tuple') return items.map(below);
  if (tag === 'set') return new Set(items.map(below));
  if (tag === 'dict') return decodeDict(items, below);
  throw new MalformedValue('an unknown tag');
}

function decodeText(tag: string, text: string): SandboxValue {
  if (tag === 'int' && /^-?\d{1,10000}$/.test(text)) return BigInt(text);
  if (tag === 'float' && ['nan', 'inf', '-inf'].includes(text)) return Number(text.replace('inf', 'Infinity'));
  if (tag === 'bytes' && /^([0-9a-f]{2})*$/.test(text)) return fromHex(text);
  throw new MalformedValue('an unknown tag');
}

function decodeDict(items: readonly unknown[], below: (item: unknown) => SandboxValue): SandboxValue {
  const pairs = items.map((pair): [SandboxValue, SandboxValue] => {
    if (!Array.isArray(pair) || pair.length !== 2) throw new MalformedValue('a pair that is none');
    return [below(pair[0]), below(pair[1])];
  });
  const isText = (pair: [SandboxValue, SandboxValue]): pair is [string, SandboxValue] => typeof pair[0] === 'string';
  // fromEntries makes own properties, also of __proto__
  return pairs.every(isText) ? Object.fromEntries(pairs) : new Map(pairs);
}
