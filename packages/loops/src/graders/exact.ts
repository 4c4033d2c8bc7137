/** Answers that are right only when they are the same text. */
import type { Problem } from '../environments/environment.js';
import { type FinalAnswer, finalAnswer } from './answers/final-answer.js';
import { type Component, type ComponentOptions, type GoldOptions, goldOf, labelled } from './component.js';

export interface ExactMatchOptions<P extends Problem> extends ComponentOptions, GoldOptions<P> {
  /** What is compared: all that was written (the default), or the final answer by the rule of {@link finalAnswer}. */
  readonly of?: 'text' | 'final-answer';
  /** Default true: `Paris` is `paris`. */
  readonly ignoreCase?: boolean;
}

/**
 * 1 when answer and right answer are the same text, else 0. Blanks around both don't count, runs of blanks count as one, and
 * both are brought to Unicode's composed form, so that two ways to write `é` are the same.
 */
export function exactMatch<P extends Problem = Problem>(options: ExactMatchOptions<P> = {}): Component<P> {
  const { of = 'text', ignoreCase = true } = options;
  const normal = (text: string): string => {
    const blank = text.normalize('NFC').trim().replace(/\s+/g, ' ');
    return ignoreCase ? blank.toLowerCase() : blank;
  };
  return {
    ...labelled('exact', options),
    score: ({ problem, text, stopReason }) => {
      const gold = goldOf(problem, options);
      const found: FinalAnswer =
        of === 'text' ? { status: 'ok', text, marker: 'whole', candidates: 1 } : finalAnswer(text, stopReason);
      if (found.status === 'unparsed') return found;
      return {
        status: 'ok',
        score: normal(found.text) === normal(gold) ? 1 : 0,
        trace: `${found.marker}: ${found.text}`,
      };
    },
  };
}
