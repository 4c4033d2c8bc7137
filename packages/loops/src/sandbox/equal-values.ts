/** Whether what a program returned is what was expected. */
import type { SandboxValue } from './values.js';

/** Of numbers of which one is not whole. */
const relativeTolerance = 1e-9;
/** Of members of sets, or keys of dicts, that are themselves lists or not whole. */
const maxCompared = 1000;

type Text = { readonly [key: string]: SandboxValue };

const isMap = (value: SandboxValue): value is ReadonlyMap<SandboxValue, SandboxValue> => value instanceof Map;
const isSet = (value: SandboxValue): value is ReadonlySet<SandboxValue> => value instanceof Set;
const isList = (value: SandboxValue): value is readonly SandboxValue[] => Array.isArray(value);

/**
 * Equal in structure: lists and tuples in order, sets and dicts in any order, keys of an expected object also under JSON's names of them
 * (`1` is `"1"`). Whole numbers are equal exactly, others within 1e-9 of the larger; NaN is NaN; true is not 1.
 */
export function equalValues(expected: SandboxValue, got: SandboxValue): boolean {
  if (typeof expected === 'number' || typeof expected === 'bigint') return equalNumbers(expected, got);
  if (typeof expected !== 'object' || expected === null || typeof got !== 'object' || got === null)
    return expected === got;
  if (isList(expected) || expected instanceof Uint8Array) return equalLists(expected, got);
  if (isSet(expected)) return isSet(got) && equalSets(expected, got);
  if (isList(got) || got instanceof Uint8Array || isSet(got)) return false;
  if (isMap(expected)) return equalMaps(expected, isMap(got) ? got : new Map(Object.entries(got)));
  return equalTexts(expected, isMap(got) ? underNames(got) : (got as Text)); // true: all other kinds are gone
}

function equalNumbers(expected: number | bigint, got: SandboxValue): boolean {
  if (typeof got !== 'number' && typeof got !== 'bigint') return false;
  if (Object.is(expected, got) || expected === got) return true;
  if (isWhole(expected) && isWhole(got)) return BigInt(expected) === BigInt(got);
  const [a, b] = [Number(expected), Number(got)];
  // an infinity would be within tolerance of everything
  return Number.isFinite(a - b) && Math.abs(a - b) <= relativeTolerance * Math.max(Math.abs(a), Math.abs(b));
}

function isWhole(value: number | bigint): boolean {
  return typeof value === 'bigint' || Number.isInteger(value);
}

function equalLists(expected: readonly SandboxValue[] | Uint8Array, got: SandboxValue): boolean {
  if (expected instanceof Uint8Array !== got instanceof Uint8Array) return false;
  if (!isList(got) && !(got instanceof Uint8Array)) return false;
  return expected.length === got.length && [...expected].every((item, i) => equalValues(item, got[i]!));
}

/** Each of one is one of the other. Members that are not found as they are get compared one by one, up to a limit. */
function equalSets(expected: ReadonlySet<SandboxValue>, got: ReadonlySet<SandboxValue>): boolean {
  if (expected.size !== got.size) return false;
  const left = [...got].filter((item) => !expected.has(item));
  return matched(
    [...expected].filter((item) => !got.has(item)),
    left,
  );
}

function equalMaps(
  expected: ReadonlyMap<SandboxValue, SandboxValue>,
  got: ReadonlyMap<SandboxValue, SandboxValue>,
): boolean {
  if (expected.size !== got.size) return false;
  const missing = [...expected].filter(([key, item]) => !got.has(key) || !equalValues(item, got.get(key)!));
  return matched(
    missing,
    [...got].filter(([key]) => !expected.has(key)),
  );
}

function matched(expected: readonly SandboxValue[], got: readonly SandboxValue[]): boolean {
  if (expected.length !== got.length || expected.length > maxCompared) return false;
  const left = [...got];
  return expected.every((item) => {
    const at = left.findIndex((other) => equalValues(item, other));
    if (at >= 0) left.splice(at, 1);
    return at >= 0;
  });
}

function underNames(map: ReadonlyMap<SandboxValue, SandboxValue>): Text | undefined {
  const named = [...map].map(([key, item]): [string, SandboxValue] => [
    typeof key === 'object' && key !== null ? '' : String(key),
    item,
  ]);
  const hasNames = [...map.keys()].every((key) => key === null || typeof key !== 'object');
  return hasNames && new Set(named.map(([name]) => name)).size === map.size ? Object.fromEntries(named) : undefined;
}

function equalTexts(expected: Text, got: Text | undefined): boolean {
  if (got === undefined) return false;
  const keys = Object.keys(expected);
  return (
    keys.length === Object.keys(got).length &&
    keys.every((key) => Object.hasOwn(got, key) && equalValues(expected[key]!, got[key]!))
  );
}
