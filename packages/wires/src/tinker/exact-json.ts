/** JSON of this wire: sequence numbers go up to about 10^18, beyond what a double holds. */
import { parseJson, replaceOutsideStrings } from '../checks.js';

/** Integers of 16 digits and more. */
const longInteger = /(?<![\d.eE])-?\d{16,}(?![\d.eE])/g;

/**
 * Parses a body; integers of 16 digits and more come as strings of digits, exactly as they were written.
 *
 * @throws `invalid_argument` for what is not JSON
 */
export function parseExactJson(text: string): unknown {
  const exact = /\d{16}/.test(text)
    ? replaceOutsideStrings(text, (part) => part.replace(longInteger, (digits) => `"${digits}"`))
    : text;
  return parseJson(exact);
}
