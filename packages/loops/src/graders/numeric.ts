/** Answers that are numbers. */
import { complaint, type StopReason } from '@loopwright/protocol';
import type { Problem } from '../environments/environment.js';
import { finalAnswer } from './answers/final-answer.js';
import {
  equalNumbers,
  type NumberOptions,
  numbersIn,
  parseNumber,
  type Rational,
  showRational,
  type Tolerance,
} from './answers/rational.js';
import { type Component, type ComponentOptions, type GoldOptions, goldOf, labelled } from './component.js';

export interface NumericAnswerOptions<P extends Problem> extends ComponentOptions, GoldOptions<P>, NumberOptions {
  /** Default exact: numbers are compared as fractions, so 0.5 is 1/2 and 0.3333 isn't 1/3. */
  readonly tolerance?: Tolerance;
}

/**
 * 1 when the final answer is the right number, 0 when it is another; `unparsed` with 0 when there is none.
 *
 * Read are `1,234`, `$9{,}500`, `1/2`, `\frac{1}{2}`, `½`, `2½`, `1.5e3`. Of several numbers in an answer the last counts,
 * but after `####` the first: what follows it is talk.
 *
 * @throws into the grade, when the problem's own answer is no number
 */
export function numericAnswer<P extends Problem = Problem>(options: NumericAnswerOptions<P> = {}): Component<P> {
  return {
    ...labelled('numeric', options),
    score: ({ problem, text, stopReason }) => {
      const gold = goldNumber(goldOf(problem, options), options);
      const found = numberOf(text, stopReason, options);
      if (found.status === 'unparsed') return found;
      const isRight = equalNumbers(found.value, gold, options.tolerance);
      return { status: 'ok', score: isRight ? 1 : 0, trace: found.trace };
    },
  };
}

function goldNumber(text: string, options: NumberOptions): Rational {
  // A data set's own answer may carry its reasoning, as GSM8K's do.
  const marked = finalAnswer(text);
  const value =
    marked.status === 'ok'
      ? (parseNumber(marked.text, options) ?? pick(marked.text, marked.marker, options))
      : undefined;
  if (value !== undefined) return value;
  throw complaint({
    field: 'problem.answer',
    expected: 'a number',
    got: `${text.length} characters without one`,
    remedy: 'leave out the problem, or correct its answer',
  });
}

type FoundNumber =
  | { readonly status: 'ok'; readonly value: Rational; readonly trace: string }
  | { readonly status: 'unparsed'; readonly reason: string };

/** The number of an answer, by the rule of {@link numericAnswer}. */
export function numberOf(text: string, stopReason: StopReason, options: NumberOptions = {}): FoundNumber {
  const found = finalAnswer(text, stopReason);
  if (found.status === 'unparsed') return found;
  const value = parseNumber(found.text, options) ?? pick(found.text, found.marker, options);
  if (value === undefined) return { status: 'unparsed', reason: `no number in the answer (${found.marker})` };
  const which = found.candidates > 1 ? `the last of ${found.candidates}` : 'the only one';
  return { status: 'ok', value, trace: `${found.marker}, ${which}: ${showRational(value)}` };
}

function pick(text: string, marker: string, options: NumberOptions): Rational | undefined {
  const numbers = numbersIn(text, options);
  return marker === 'hashes' ? numbers[0] : numbers.at(-1);
}
