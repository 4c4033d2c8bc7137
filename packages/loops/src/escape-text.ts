/** Text that a model wrote, made safe to print: what it says can't move a cursor, change colours or hide other text. */

const short: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t', '\\': '\\\\' };

/**
 * Replaces control characters (C0, C1, DEL), invisible and direction-changing ones, line separators and lone surrogates by
 * escapes such as `\n`, `\x1b` and `\u{202e}`. A backslash becomes two, so that nothing looks like an escape that isn't.
 */
export function escapeText(text: string): string {
  return text.replace(/[\\\p{C}\p{Zl}\p{Zp}]/gu, (char) => {
    const known = short[char];
    if (known !== undefined) return known;
    const code = char.codePointAt(0) ?? 0;
    const hex = code.toString(16);
    return code < 0x100 ? `\\x${hex.padStart(2, '0')}` : `\\u{${hex}}`;
  });
}

const wide =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/** Columns that a text takes in a terminal: two for CJK and emoji, none for combining marks. */
export function displayWidth(text: string): number {
  let width = 0;
  for (const char of text) if (!/\p{M}/u.test(char)) width += wide.test(char) ? 2 : 1;
  return width;
}

/** Cuts to `columns`, with an ellipsis where something was cut. */
export function truncateText(text: string, columns: number): string {
  if (displayWidth(text) <= columns) return text;
  let cut = '';
  for (const char of text) {
    if (displayWidth(cut + char) > columns - 1) break;
    cut += char;
  }
  return `${cut}…`;
}
