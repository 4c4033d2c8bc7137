/** The task: which problems there are, how they are put to the model, and when an answer is right. */
import type { Environment, Problem } from 'loopwright';
import { grade } from './grader.js';

export interface Difference extends Problem {
  readonly expected: number;
}

/** Differences such as `57-23=`. Replace problems, prompt and grader by your own. */
export const environment: Environment<Difference> = {
  name: '__NAME__',
  draw(random) {
    const a = random.integer(100);
    const b = random.integer(a + 1);
    const question = `${a}-${b}=`;
    return { id: question, question, answer: String(a - b), expected: a - b };
  },
  prompt: (problem, tokenizer) => tokenizer.encode(problem.question),
  grade: ({ problem, text }) => grade(text, problem.expected),
};
