/** In what two settings differ, by paths such as `loss.beta`. */
import type { JsonValue } from '../data/row.js';
import { canonicalJson } from '../data/row-hash.js';

export interface ConfigChange {
  readonly path: string;
  /** Absent where only the other has it. */
  readonly a?: JsonValue;
  readonly b?: JsonValue;
}

/** Every leaf, and every empty object or list, that isn't the same in both; sorted by path. */
export function compareConfigs(a: JsonValue, b: JsonValue): ConfigChange[] {
  const [left, right] = [leavesOf(a), leavesOf(b)];
  const paths = [...new Set([...left.keys(), ...right.keys()])].sort();
  return paths.flatMap((path): ConfigChange[] => {
    const [x, y] = [left.get(path), right.get(path)];
    if (x !== undefined && y !== undefined && canonicalJson(x) === canonicalJson(y)) return [];
    return [{ path, ...(x === undefined ? {} : { a: x }), ...(y === undefined ? {} : { b: y }) }];
  });
}

function leavesOf(value: JsonValue, path = '', leaves = new Map<string, JsonValue>()): Map<string, JsonValue> {
  const entries = typeof value === 'object' && value !== null ? Object.entries(value) : [];
  if (entries.length === 0) leaves.set(path, value);
  for (const [key, inner] of entries) {
    const name = Array.isArray(value) ? `[${key}]` : path === '' ? key : `.${key}`;
    leavesOf(inner as JsonValue, `${path}${name}`, leaves); // true: members of JSON are JSON
  }
  return leaves;
}
