/** One line of a JSONL file as a row. */

import { findJsonFault, maxDepth } from './json-faults.js';
import { type Checked, type JsonRow, type JsonValue, kindOf } from './row.js';

/** What the fast way can't judge: integers and numbers that may be too large, and escaped surrogates. */
const suspicious = /\d{16}|\d[eE]\+?\d{3}|\\u[dD][89a-fA-F]/;

/**
 * A row of a line. `JSON.parse` does the work; keys that are there twice are found by counting, and only lines with something odd
 * are read a second time to find where it is.
 */
export function parseJsonRow(text: string): Checked<JsonRow> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: findJsonFault(text) ?? { expected: 'a JSON object', got: 'a text that is none' } };
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { fault: { index: text.search(/\S/), expected: 'a JSON object', got: kindOf(value) } };
  }
  const keys = countKeys(value as JsonValue, 0); // true: JSON.parse made it
  const isOdd = keys === undefined || keys !== countWrittenKeys(text) || suspicious.test(text);
  const fault = isOdd ? findJsonFault(text) : undefined;
  return fault === undefined ? { value: value as JsonRow } : { fault }; // true: an object that JSON.parse made
}

/** Undefined below the deepest level that a row may have. */
function countKeys(value: JsonValue, depth: number): number | undefined {
  if (typeof value !== 'object' || value === null) return 0;
  if (depth > maxDepth) return undefined;
  let keys = Array.isArray(value) ? 0 : Object.keys(value).length;
  for (const inner of Object.values(value)) {
    if (typeof inner !== 'object' || inner === null) continue;
    const below = countKeys(inner, depth + 1);
    if (below === undefined) return undefined;
    keys += below;
  }
  return keys;
}

const [backslash, colon] = [0x5c, 0x3a];

/** Strings with a colon after them, in a text that is JSON. */
function countWrittenKeys(text: string): number {
  let keys = 0;
  for (let start = text.indexOf('"'); start !== -1; ) {
    let end = text.indexOf('"', start + 1);
    while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
    let next = end + 1;
    while (text.charCodeAt(next) <= 0x20) next += 1;
    if (text.charCodeAt(next) === colon) keys += 1;
    start = text.indexOf('"', end + 1);
  }
  return keys;
}

function isEscaped(text: string, at: number): boolean {
  let slashes = 0;
  while (text.charCodeAt(at - 1 - slashes) === backslash) slashes += 1;
  return slashes % 2 === 1;
}
