/** A sign-off in words. */
import { counted, escapeText } from '@loopwright/loops';
import type { SignOff } from '@loopwright/loops/node';
import { timeText } from '../text.js';

/** `Ada, 2026-03-01 14:05, who saw 60 answers to 20 problems at steps 0, 15, 30, some in part: “fine”`. */
export function signOffText({ name, at, note, seen }: SignOff): string {
  const { samples, problems, steps, whole } = seen;
  const word = steps.length === 1 ? 'step' : 'steps';
  const what = `${counted(samples, 'answer')} to ${counted(problems, 'problem')} at ${word} ${steps.join(', ')}`;
  const part = whole === undefined ? '' : whole ? ', in full' : ', some in part';
  return `${escapeText(name)}, ${timeText(Date.parse(at))}, who saw ${what}${part}${note === '' ? '' : `: “${escapeText(note)}”`}`;
}
