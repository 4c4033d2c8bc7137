/** Values of a GGUF file's metadata, each checked for what it must be. */
import { invalidFile, showName } from '../source-file.js';
import type { GgufScalar, GgufValue } from './header.js';

export interface Metadata {
  has(key: string): boolean;
  /** A whole number from 0 on. */
  count(key: string): number;
  optionalCount(key: string): number | undefined;
  number(key: string): number;
  string(key: string): string;
  optionalString(key: string): string | undefined;
  flag(key: string, fallback: boolean): boolean;
  strings(key: string): readonly string[];
  /** As many numbers as `length`. */
  numbers(key: string, length: number): readonly number[];
}

/** Reads with refusals of code `model_invalid` that name file and key. */
export function checkedMetadata(values: ReadonlyMap<string, GgufValue>, path: string): Metadata {
  const bad = (key: string, expected: string) => invalidFile(path, showName(key), expected, describe(values.get(key)));
  const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0; // A number, as found first.
  const list = <T extends GgufScalar>(key: string, type: 'string' | 'number', expected: string): readonly T[] => {
    const value = values.get(key);
    if (!Array.isArray(value) || value.some((item) => typeof item !== type)) throw bad(key, expected);
    return value as readonly T[]; // Each was just looked at.
  };
  const count = (key: string): number => {
    const value = values.get(key);
    if (!isCount(value)) throw bad(key, 'a whole number');
    return value;
  };
  const string = (key: string): string => {
    const value = values.get(key);
    if (typeof value !== 'string') throw bad(key, 'text');
    return value;
  };
  return {
    has: (key) => values.has(key),
    count,
    optionalCount: (key) => (values.has(key) ? count(key) : undefined),
    number: (key) => {
      const value = values.get(key);
      if (typeof value !== 'number' || !Number.isFinite(value)) throw bad(key, 'a number');
      return value;
    },
    string,
    optionalString: (key) => (values.has(key) ? string(key) : undefined),
    flag: (key, fallback) => {
      const value = values.get(key) ?? fallback;
      if (typeof value !== 'boolean') throw bad(key, 'true or false');
      return value;
    },
    strings: (key) => list<string>(key, 'string', 'a list of texts'),
    numbers: (key, length) => {
      const found = list<number>(key, 'number', `a list of ${length} numbers`);
      if (found.length !== length) throw bad(key, `a list of ${length} numbers`);
      return found;
    },
  };
}

function describe(value: GgufValue | undefined): string {
  if (value === undefined) return 'nothing';
  if (typeof value === 'object') return `a list of ${value.length}`;
  return typeof value === 'string' ? `text of ${value.length} characters` : String(value);
}
