/** Long lines on a terminal: broken at spaces, with what follows set in below the first. */
import { stripVTControlCharacters } from 'node:util';
import wrapAnsi from 'wrap-ansi';

/** Beside a longer lead a column of words is too narrow to read: the terminal breaks the line itself. */
const leastColumns = 24;

/** A number stays with its unit. */
const beforeUnit = /(?<=\d) (?=(?:%|[kMGT]?B|[kM]|s|min|h)(?!\w))/g;
const unbroken = '\u00a0';

/** What is asked of a stream that is written to. */
export interface Width {
  readonly isTTY?: boolean;
  readonly columns?: number;
}

/**
 * @param lead what the first line begins with; others have as many blanks
 * @param width of a terminal; what is no terminal has lines of any length, so that programs find a text whole
 */
export function hanging(lead: string, text: string, { isTTY = false, columns = 0 }: Width): string {
  const indent = stripVTControlCharacters(lead).length;
  const room = columns - indent;
  if (!isTTY || room < leastColumns) return `${lead}${text}`;
  const wrapped = wrapAnsi(text.replace(beforeUnit, unbroken), room, { hard: false });
  return lead + wrapped.replaceAll(unbroken, ' ').replaceAll('\n', `\n${' '.repeat(indent)}`);
}
