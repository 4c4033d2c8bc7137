/** What JSON text costs before a parser sees it: nesting, and values that each take an object of memory. */
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import type { Limits } from './limits.js';

const [quote, backslash, openBrace, closeBrace, openBracket, closeBracket] = [0x22, 0x5c, 0x7b, 0x7d, 0x5b, 0x5d];

/**
 * One pass over the bytes; what is no JSON is left to the parser. Numbers are not counted: they take 8 bytes each, whatever their text.
 * An array of 60 MB of empty objects would take gigabytes, and a deep one the stack of whoever walks it.
 *
 * @throws `invalid_argument`
 */
export function checkJsonShape(
  bytes: Uint8Array,
  { jsonDepth, jsonParts }: Pick<Limits, 'jsonDepth' | 'jsonParts'>,
): void {
  let [depth, parts, at] = [0, 0, 0];
  while (at < bytes.length) {
    const byte = bytes[at]!;
    if (byte === quote) {
      parts += 1;
      at = endOfString(bytes, at + 1);
    } else if (byte === openBrace || byte === openBracket) {
      depth += 1;
      parts += 1;
      if (depth > jsonDepth) throw beyond(`JSON nested ${jsonDepth} deep at most`, 'deeper nesting');
    } else if (byte === closeBrace || byte === closeBracket) depth -= 1;
    if (parts > jsonParts) throw beyond(`at most ${jsonParts} objects, arrays and strings`, 'more');
    at += 1;
  }
}

/** Where the closing quote is; the length where there is none. */
function endOfString(bytes: Uint8Array, from: number): number {
  let at = from;
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}

function beyond(expected: string, got: string): LoopwrightError {
  return complaint({ field: 'body', expected, got, remedy: 'split the batch over several calls' });
}
