/** Texts beside each other in the columns of a terminal. */
import { counted, displayWidth, escapeText } from '@loopwright/loops';

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

export interface SideBySide {
  readonly lines: readonly string[];
  /** Cells whose text has more lines than are shown. */
  readonly shortened: number;
}

/** All cells beside each other, or below each other where the terminal is too narrow. */
export function sideBySide(cells: readonly Cell[], { width, lines, paintHead }: SideBySideOptions): SideBySide {
  const column = Math.floor((width - gap.length * (cells.length - 1)) / cells.length);
  if (column < leastWidth && cells.length > 1) {
    const each = cells.map((cell) => sideBySide([cell], { width, lines, paintHead }));
    return {
      lines: each.flatMap((one) => one.lines),
      shortened: each.reduce((sum, one) => sum + one.shortened, 0),
    };
  }
  const blocks = cells.map(({ head, text }) => {
    const heads = head.split('\n').flatMap((line) => wrapped(line, column));
    return { heads, ...firstLines(text, { width: column, lines }) };
  });
  const headLines = Math.max(0, ...blocks.map(({ heads }) => heads.length));
  const textLines = Math.max(0, ...blocks.map(({ texts }) => texts.length));
  const row = (parts: readonly string[], paint: (text: string) => string) =>
    parts
      .map((part) => `${paint(part)}${' '.repeat(Math.max(0, column - displayWidth(part)))}`)
      .join(gap)
      .trimEnd();
  const plain = (text: string): string => text;
  const shown = [
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
  return { lines: shown, shortened: blocks.filter(({ isShortened }) => isShortened).length };
}

export interface FirstLines {
  readonly texts: readonly string[];
  readonly isShortened: boolean;
}

/** A text from outside in lines that fit; where there are more than `lines`, the last says how many. */
export function firstLines(
  text: string,
  { width, lines }: { readonly width: number; readonly lines: number },
): FirstLines {
  const all = text.split('\n').flatMap((line) => wrapped(escapeText(line), width));
  if (all.length <= lines) return { texts: all, isShortened: false };
  const more = counted(all.length - lines + 1, 'more line');
  return { texts: [...all.slice(0, lines - 1), `… ${more}`], isShortened: true };
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
