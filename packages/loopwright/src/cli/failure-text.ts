/** Why a grading failed, in a line. */
import { escapeText } from '@loopwright/loops';
import { LoopwrightError } from '@loopwright/protocol';

/** Of a reason; more is seldom read. */
const shownCharacters = 160;

/** What the grader threw, with its class. The message may quote the answer: it is for places where answers are shown. */
export function failureText(error: unknown): string {
  const name = LoopwrightError.isInstance(error) || !(error instanceof Error) ? '' : `${error.name}: `;
  return shortened(escapeText(`${name}${error instanceof Error ? error.message : String(error)}`), shownCharacters);
}

export function shortened(text: string, characters: number): string {
  return text.length > characters ? `${text.slice(0, characters)}…` : text;
}
