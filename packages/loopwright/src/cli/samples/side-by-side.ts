/** Texts beside each other in the columns of a terminal. */
import { displayWidth, escapeText } from '@loopwright/loops';

/** Between two columns. */
const gap = ' │ ';
/** Narrower columns are put below each other instead. */
const leastWidth = 20;

export interface Cell {
  /** Above the text, in few words; may have several lines. */
  readonly head: string;
  /** What a model wrote: it is escaped here. */
  readonly text: string;
}

export interface SideBySideOptions {
  /** Of the terminal, in columns. */
  readonly width: number;
  /** Lines of a text that are shown. */
  readonly lines: number;
  readonly paintHead: (text: string) => string;
}

/** Lines of all cells beside each other, or below each other where the terminal is too narrow. */
export function sideBySide(cells: readonly Cell[], { width, lines, paintHead }: SideBySideOptions): string[] {
  const column = Math.floor((width - gap.length * (cells.length - 1)) / cells.length);
  if (column < leastWidth && cells.length > 1)
    return cells.flatMap((cell) => sideBySide([cell], { width, lines, paintHead }));
  const blocks = cells.map(({ head, text }) => {
    const heads = head.split('\n').flatMap((line) => wrapped(line, column));
    return {
      heads,
      texts: shortened(
        text.split('\n').flatMap((line) => wrapped(escapeText(line), column)),
        lines,
      ),
    };
  });
  const headLines = Math.max(0, ...blocks.map(({ heads }) => heads.length));
  const textLines = Math.max(0, ...blocks.map(({ texts }) => texts.length));
  const row = (parts: readonly string[], paint: (text: string) => string) =>
    parts
      .map((part) => `${paint(part)}${' '.repeat(Math.max(0, column - displayWidth(part)))}`)
      .join(gap)
      .trimEnd();
  const plain = (text: string): string => text;
  return [
    ...Array.from({ length: headLines }, (_, i) =>
      row(
        blocks.map(({ heads }) => heads[i] ?? ''),
        paintHead,
      ),
    ),
    ...Array.from({ length: textLines }, (_, i) =>
      row(
        blocks.map(({ texts }) => texts[i] ?? ''),
        plain,
      ),
    ),
  ];
}

function shortened(texts: readonly string[], lines: number): string[] {
  if (texts.length <= lines) return [...texts];
  const more = texts.length - lines + 1;
  return [...texts.slice(0, lines - 1), `… ${more} more lines`];
}

/** One line as lines of at most `width` columns, broken at spaces where there are some; at least one. */
export function wrapped(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  let used = 0;
  let space = -1;
  for (const char of text) {
    const wide = displayWidth(char);
    if (used + wide > width && line !== '') {
      const at = char === ' ' || space <= 0 ? line.length : space;
      lines.push(line.slice(0, at).trimEnd());
      line = line.slice(at).trimStart();
      used = displayWidth(line);
      space = -1;
      if (char === ' ') continue;
    }
    if (char === ' ') space = line.length;
    line += char;
    used += wide;
  }
  return [...lines, line.trimEnd()];
}
