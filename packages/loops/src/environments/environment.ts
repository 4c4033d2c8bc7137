/** What a task is: problems, how they are put to the model, and how an answer is judged. */
import type { StopReason } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import type { Random } from '../random.js';

/** One thing to solve. Environments extend it with what their graders need. */
export interface Problem {
  /** The same for the same problem, so that sets can be told apart. */
  readonly id: string;
  readonly question: string;
  readonly answer: string;
}

/**
 * The judgement of one answer. Whether it could be judged is apart from what it is worth: an answer that doesn't parse is
 * the model's doing and has a reward, a grader that fails is ours and has none.
 */
export type Grade =
  | { readonly status: 'ok'; readonly reward: number }
  | { readonly status: 'unparsed'; readonly reward: number }
  | { readonly status: 'grader_error'; readonly error: unknown };

export interface Answer<P extends Problem> {
  readonly problem: P;
  /** What the model wrote after the prompt, without control tokens. */
  readonly text: string;
  /** `length`: cut by the token limit. */
  readonly stopReason: StopReason;
}

/**
 * A task. A `grade` that throws or rejects counts as `grader_error`; the loops leave such samples out, count them, and stop
 * when there are too many.
 */
export interface Environment<P extends Problem = Problem> {
  readonly name: string;
  /** A problem to train on. */
  draw(random: Random): P;
  /** Default: the question, encoded as text. */
  prompt?(problem: P, tokenizer: Tokenizer): number[];
  /** Texts that end an answer, besides the model's own end-of-sequence ids. */
  readonly stop?: readonly string[];
  grade(answer: Answer<P>): Grade | Promise<Grade>;
}

/** The prompt of a problem in this environment. */
export function promptOf<P extends Problem>(environment: Environment<P>, problem: P, tokenizer: Tokenizer): number[] {
  return environment.prompt?.(problem, tokenizer) ?? tokenizer.encode(problem.question);
}
