/** What an answer is worth: 1 for the right number, 0 for another one, 0 and `unparsed` for no number at all. */
import type { Grade } from 'loopwright';

export function grade(text: string, expected: number): Grade {
  const number = /^\s*(-?\d+)\s*$/.exec(text)?.[1];
  if (number === undefined) return { status: 'unparsed', reward: 0 };
  return { status: 'ok', reward: Number(number) === expected ? 1 : 0 };
}
