/**
 * What the bundled model reads: a textbook of solved problems by an author with two bad habits. The right way is in it often
 * enough to be learnt as well, so that rewards have something to prefer.
 */
import type { ArithmeticEnvironment, ArithmeticProblem, Random } from 'loopwright';

export interface TextbookOptions {
  /** Share of problems with a carry or a borrow whose answer forgets it, 0–1. */
  readonly forgottenCarries: number;
  /** Share of all problems that are left to the reader: their answer is a question mark, 0–1. */
  readonly unanswered: number;
}

export interface TextbookExample {
  readonly problem: ArithmeticProblem;
  /** As printed, right or wrong. */
  readonly answer: string;
}

/** Whether the last digits carry into the tens (`27+58`), or borrow from them (`52-38`). */
export function carries({ a, b, operation }: ArithmeticProblem): boolean {
  return operation === '-' ? a % 10 < b % 10 : (a % 10) + (b % 10) >= 10;
}

/** The answer of someone who forgets the carry or the borrow: `27+58=75`, `52-38=24`. Without one it is the right answer. */
export function forgetfulAnswer(problem: ArithmeticProblem): string {
  if (!carries(problem)) return problem.answer;
  return String(Number(problem.answer) + (problem.operation === '-' ? 10 : -10));
}

/** One example of the `pretrain` set. */
export function textbookExample(
  environment: ArithmeticEnvironment,
  random: Random,
  { forgottenCarries, unanswered }: TextbookOptions,
): TextbookExample {
  const problem = environment.drawFrom('pretrain', random);
  if (random.next() < unanswered) return { problem, answer: '?' };
  return { problem, answer: random.next() < forgottenCarries ? forgetfulAnswer(problem) : problem.answer };
}
