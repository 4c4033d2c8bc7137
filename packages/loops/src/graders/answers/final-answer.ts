/** Finding the final answer in what a model wrote. */
import type { StopReason } from '@loopwright/protocol';

/** What marked the answer. */
export type AnswerMarker = 'boxed' | 'hashes' | 'phrase' | 'whole';

/** The text of the final answer, or why there is none. */
export type FinalAnswer =
  | {
      readonly status: 'ok';
      readonly text: string;
      readonly marker: AnswerMarker;
      /** How many of that mark there were; the last one counts. */
      readonly candidates: number;
    }
  | { readonly status: 'unparsed'; readonly reason: string };

/**
 * One rule, in this order: the last `\boxed{…}`; else what follows the last `####`, to the end of the line; else what follows
 * the last "answer is" or "answer:", to the end of the sentence or line; else the whole text.
 *
 * A box that is opened and never closed is no answer, also where earlier text holds numbers: what was cut might have been
 * any. The reason says whether the token limit cut it.
 */
export function finalAnswer(text: string, stopReason?: StopReason): FinalAnswer {
  const boxes = boxesIn(text);
  const last = boxes.at(-1);
  if (last !== undefined) {
    if (last.content === undefined) {
      const cut = stopReason === 'length' ? ': the answer was truncated by the token limit' : '';
      return { status: 'unparsed', reason: `a \\boxed{ is not closed${cut}` };
    }
    return { status: 'ok', text: last.content, marker: 'boxed', candidates: boxes.length };
  }
  const hashes = text.split('####');
  if (hashes.length > 1) {
    return { status: 'ok', text: firstLine(hashes.at(-1) ?? ''), marker: 'hashes', candidates: hashes.length - 1 };
  }
  const phrases = text.split(/\banswer\s*(?:is|:|=)\s*:?/i);
  if (phrases.length > 1) {
    const said = firstLine(phrases.at(-1) ?? '').replace(/\.(?:\s.*)?$/s, '');
    if (said.trim() !== '') return { status: 'ok', text: said, marker: 'phrase', candidates: phrases.length - 1 };
  }
  if (text.trim() === '') return { status: 'unparsed', reason: 'nothing was written' };
  return { status: 'ok', text, marker: 'whole', candidates: 1 };
}

function firstLine(text: string): string {
  return text.trimStart().split('\n', 1)[0] ?? '';
}

interface Box {
  /** Absent when it is not closed. */
  readonly content?: string;
}

/** Boxes in order; braces inside are matched, escaped ones don't count. */
function boxesIn(text: string): Box[] {
  const boxes: Box[] = [];
  const opening = /\\f?boxed\s*\{/g;
  for (let match = opening.exec(text); match !== null; match = opening.exec(text)) {
    const start = opening.lastIndex;
    const end = closingBrace(text, start);
    if (end === undefined) return [...boxes, {}];
    boxes.push({ content: text.slice(start, end) });
    opening.lastIndex = end + 1;
  }
  return boxes;
}

/** Where the brace that was opened before `from` is closed. */
function closingBrace(text: string, from: number): number | undefined {
  let depth = 1;
  for (let i = from; i < text.length; i++) {
    const char = text[i];
    if (char === '\\') i += 1;
    else if (char === '{') depth += 1;
    else if (char === '}') {
      depth -= 1;
      if (depth === 0) return i;
    }
  }
  return undefined;
}
