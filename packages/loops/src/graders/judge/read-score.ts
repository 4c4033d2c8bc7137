/** The score in what a judge wrote, or none: never the nearest number. */
import { readJson } from '../json/read-json.js';

/** How the judge is told to answer. */
export type ScoreForm = 'json' | 'last-line';

export interface Scale {
  readonly min: number;
  readonly max: number;
}

const lastLine = /^score: (-?\d+(?:\.\d+)?)$/i;

/**
 * `json`: the answer is one object with a number `score`, bare or in a block. `last-line`: its last line is `Score: 7`, and no other
 * line is a score. A score off the scale is none.
 */
export function readScore(text: string, form: ScoreForm, { min, max }: Scale): number | undefined {
  const score = form === 'json' ? jsonScore(text) : lineScore(text);
  return score !== undefined && score >= min && score <= max ? score : undefined;
}

function jsonScore(text: string): number | undefined {
  const fences = text.match(/^ {0,3}(?:`{3,}|~{3,})/gm)?.length ?? 0;
  if (fences > 2) return undefined; // of two blocks one may be the candidate's
  const read = readJson(text);
  if (read.status === 'unparsed' || typeof read.value !== 'object' || read.value === null) return undefined;
  const { score } = read.value as { readonly score?: unknown }; // true: an object
  return typeof score === 'number' && Object.hasOwn(read.value, 'score') ? score : undefined;
}

function lineScore(text: string): number | undefined {
  const lines = text
    .trim()
    .split(/\r?\n/)
    .map((line) => line.trim());
  const scores = lines.filter((line) => lastLine.test(line));
  const last = lastLine.exec(lines.at(-1) ?? '')?.[1];
  return scores.length === 1 && last !== undefined ? Number(last) : undefined;
}
