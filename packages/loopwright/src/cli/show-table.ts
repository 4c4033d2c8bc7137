/** A table that fits its terminal: columns that have no room beside the others go on below, set in. */
import { displayWidth } from '@loopwright/loops';
import type { Console } from './console.js';
import { hanging, type Width } from './hanging.js';

const gap = '  ';
/** Of the lines that a row goes on in. */
const indent = '  ';

export type Rows = readonly (readonly string[])[];

/** Rows of cells below their heads, left-aligned. */
export function showTable(console: Console, head: readonly string[], rows: Rows): void {
  for (const line of fittedTable(head, rows, console.stdout)) console.line(line);
}

/** @param width of a terminal; what is no terminal has each row in one line, so that programs find it whole */
export function fittedTable(head: readonly string[], rows: Rows, width: Width): string[] {
  const { isTTY = false, columns = 0 } = width;
  const widths = head.map((name, column) =>
    Math.max(displayWidth(name), ...rows.map((row) => displayWidth(row[column] ?? ''))),
  );
  const parts = isTTY && columns > 0 ? folded(widths, columns) : [widths.map((_, column) => column)];
  const lineOf = (row: readonly string[], part: readonly number[], at: number): string => {
    const lead = at === 0 ? '' : indent;
    const padded = part.map((column) => {
      const cell = row[column] ?? '';
      return `${cell}${' '.repeat(Math.max(0, (widths[column] ?? 0) - displayWidth(cell)))}`;
    });
    // A cell that is longer than a line of its own is broken at spaces.
    return padded.length === 1
      ? hanging(lead, padded.join('').trimEnd(), width)
      : `${lead}${padded.join(gap)}`.trimEnd();
  };
  return [head, ...rows].flatMap((row) =>
    parts.map((part, at) => lineOf(row, part, at)).filter((line, at) => at === 0 || line.trim() !== ''),
  );
}

/** Columns by the line that they stand in, each line with as many as fit. */
function folded(widths: readonly number[], columns: number): number[][] {
  const parts: number[][] = [];
  let used = Number.POSITIVE_INFINITY;
  for (const [column, width] of widths.entries()) {
    if (used + gap.length + width <= columns) {
      parts.at(-1)?.push(column);
      used += gap.length + width;
    } else {
      used = (parts.length === 0 ? 0 : indent.length) + width;
      parts.push([column]);
    }
  }
  return parts;
}
