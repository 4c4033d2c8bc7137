/** Answers of mathematics problems: numbers, formulas, lists, intervals, and words. */
import type { Problem } from '../environments/environment.js';
import { parseExpression, sameExpression } from './answers/expression.js';
import { finalAnswer } from './answers/final-answer.js';
import { normalMath, partsOf } from './answers/latex.js';
import { equalNumbers, numbersIn, parseNumber, type Rational } from './answers/rational.js';
import { type Component, type ComponentOptions, type GoldOptions, goldOf, labelled } from './component.js';

export interface MathAnswerOptions<P extends Problem> extends ComponentOptions, GoldOptions<P>, MathEquality {}

export interface MathEquality {
  /** Whether numbers and formulas are compared by value; default true. Otherwise only their normal form as text counts. */
  readonly numericEquality?: boolean;
  /** Whether `50%` is `0.5`; default false. */
  readonly percent?: boolean;
}

/**
 * 1 when the final answer (see {@link finalAnswer}) equals the right one, 0 when it doesn't; `unparsed` with 0 when there is
 * none. Numbers are compared exactly as fractions, formulas by their values at several points, lists and intervals part
 * by part and sets in any order, all else by its normal form.
 *
 * An answer that nothing marked is looked for at the end: its last number, when the right answer is a number.
 *
 * @example
 * mathAnswer().score({ problem, text: 'so it is \\boxed{\\frac{1}{2}}', stopReason: 'stop' }, context); // 1 for '0.5'
 */
export function mathAnswer<P extends Problem = Problem>(options: MathAnswerOptions<P> = {}): Component<P> {
  return {
    ...labelled('math', options),
    score: ({ problem, text, stopReason }) => {
      const gold = goldAnswer(goldOf(problem, options));
      const found = finalAnswer(text, stopReason);
      if (found.status === 'unparsed') return found;
      const isRight = candidatesOf(found, gold, options).some((candidate) => sameMath(candidate, gold, options));
      const which = found.candidates > 1 ? `the last of ${found.candidates}` : 'the only one';
      return { status: 'ok', score: isRight ? 1 : 0, trace: `${found.marker}, ${which}: ${found.text}` };
    },
  };
}

function goldAnswer(text: string): string {
  const marked = finalAnswer(text);
  return marked.status === 'ok' ? marked.text : text;
}

/** What may be meant: the marked text, or where a mark is followed by talk, its number. */
function candidatesOf(
  { text, marker }: { readonly text: string; readonly marker: string },
  gold: string,
  options: MathEquality,
): string[] {
  if (marker === 'boxed' || numberOfMath(gold, options) === undefined || numberOfMath(text, options) !== undefined)
    return [text];
  const numbers = numbersIn(text, options);
  const number = marker === 'hashes' ? numbers[0] : numbers.at(-1);
  return number === undefined ? [text] : [`${number.numerator}/${number.denominator}`];
}

/** Whether two answers are the same by the rules of {@link mathAnswer}. */
export function sameMath(answer: string, gold: string, options: MathEquality = {}): boolean {
  const [a, b] = [normalMath(answer), normalMath(gold)];
  if (a === '' || b === '') return false;
  if (a === b) return true;
  if (options.numericEquality ?? true) {
    const [x, y] = [numberOfMath(answer, options), numberOfMath(gold, options)];
    if (x !== undefined && y !== undefined) return equalNumbers(x, y);
  }
  const [left, right] = [partsOf(a), partsOf(b)];
  if (left !== undefined && right !== undefined) return sameParts(left, right, options);
  if (left !== undefined || right !== undefined) return false;
  if (!(options.numericEquality ?? true)) return false;
  const [f, g] = [parseExpression(a), parseExpression(b)];
  if (f !== undefined && g !== undefined) return sameExpression(f, g);
  return a.toLowerCase() === b.toLowerCase() && /^[a-z ]{3,}$/i.test(a);
}

function numberOfMath(text: string, options: MathEquality): Rational | undefined {
  const bare = normalMath(text);
  return parseNumber(bare, options) ?? parseNumber(text.trim(), options);
}

type Parts = NonNullable<ReturnType<typeof partsOf>>;

function sameParts(a: Parts, b: Parts, options: MathEquality): boolean {
  if (a.open !== b.open || a.close !== b.close || a.parts.length !== b.parts.length) return false;
  // Brackets fix the order, as of a point or an interval; in a set, or a list of solutions, any order is the same.
  if (a.open === '(' || a.open === '[') return a.parts.every((part, i) => sameMath(part, b.parts[i] ?? '', options));
  const rest = [...b.parts];
  return a.parts.every((part) => {
    const match = rest.findIndex((other) => sameMath(part, other, options));
    if (match >= 0) rest.splice(match, 1);
    return match >= 0;
  });
}
