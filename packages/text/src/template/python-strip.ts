/** `str.strip` as Python has it. */

/** What Python takes for white space: unlike JavaScript's it has the separators U+001C–U+001F and U+0085, and not the byte-order mark. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are white space in Python
const pythonSpace = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]/;

export interface StripOptions {
  /** Which to take away; undefined for white space. */
  readonly characters: string | undefined;
  readonly side: 'both' | 'left' | 'right';
}

export function pythonStrip(text: string, { characters, side }: StripOptions): string {
  const unwanted = characters === undefined ? undefined : new Set(characters);
  const isUnwanted = (char: string): boolean => unwanted?.has(char) ?? pythonSpace.test(char);
  const chars = Array.from(text);
  let [start, end] = [0, chars.length];
  if (side !== 'right') while (start < end && isUnwanted(chars[start]!)) start++;
  if (side !== 'left') while (end > start && isUnwanted(chars[end - 1]!)) end--;
  return chars.slice(start, end).join('');
}
