/** Judging an answer to an arithmetic problem. */
import type { Answer, Grade } from '../environment.js';
import type { ArithmeticProblem } from './problems.js';

/**
 * The first line of the answer must be the number and nothing else (blanks around it aside): 1 when it is right, 0 when it
 * is another number, `unparsed` with 0 when it is none. How the answer ended doesn't matter.
 */
export function gradeArithmetic({ problem, text }: Answer<ArithmeticProblem>): Grade {
  const line = (text.trimStart().split('\n', 1)[0] ?? '').trim();
  if (!/^(0|-?[1-9]\d{0,14})$/.test(line)) return { status: 'unparsed', reward: 0 };
  return { status: 'ok', reward: Number(line) === Number(problem.answer) ? 1 : 0 };
}
