/** Finding an answer within a completion. */
import { languageOf } from './bad-programs.js';

/** Where an answer stands by itself: not within a longer word or number. */
function places(answer: string): RegExp {
  const escaped = answer.replace(/[\\^$.*+?()[\]{}|/]/g, '\\$&');
  return new RegExp(`(?<![\\p{L}\\p{N}_]|\\d[.,])${escaped}(?![\\p{L}\\p{N}_]|[.,]\\d)`, 'gu');
}

/** Every place of the answer taken by another; undefined where there is none. */
export function replaceAnswer(text: string, answer: string, other: string): string | undefined {
  if (answer === '') return undefined;
  const changed = text.replace(places(answer), () => other);
  return changed === text ? undefined : changed;
}

/**
 * The text up to where the answer first stands. One that begins with it, a number of two digits or more, is cut within it;
 * one that doesn't hold it, and a program, in the middle.
 */
export function cutBefore(text: string, answer: string): string[] {
  const at = answer === '' || languageOf(text) !== undefined ? -1 : text.search(places(answer));
  const cut = at < 0 ? text.slice(0, Math.floor(text.length / 2)) : text.slice(0, at).trimEnd();
  if (cut.trim() !== '') return [cut];
  const [number] = /^[-+]?\d{2,}/.exec(answer) ?? [];
  if (at < 0 || number === undefined) return [];
  return [text.slice(0, at) + number.slice(0, Math.ceil(number.length / 2))];
}
