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

/** What one named component of a grader made of an answer. */
export type GradedComponent = { readonly name: string; readonly weight: number } & (
  | { readonly status: 'ok'; readonly score: number; readonly trace?: string }
  | { readonly status: 'unparsed'; readonly score: number; readonly reason: string }
  | { readonly status: 'not_applicable' }
  | { readonly status: 'timeout' | 'grader_error'; readonly error: unknown }
);

interface GradeParts {
  /** In the grader's order; absent where a grader isn't made of components. Traces are content. */
  readonly components?: readonly GradedComponent[];
}

/**
 * The judgement of one answer. Whether it could be judged is apart from what it is worth: an answer that doesn't parse is
 * the model's doing and has a reward, a grader that fails or takes too long is ours and has none.
 */
export type Grade = GradeParts &
  (
    | { readonly status: 'ok'; readonly reward: number }
    | { readonly status: 'unparsed'; readonly reward: number; readonly reason?: string }
    | { readonly status: 'timeout'; readonly error: unknown }
    | { readonly status: 'grader_error'; readonly error: unknown }
  );

/** Whether the grader, not the model, is to blame. */
export function isFailure(grade: Grade): grade is Extract<Grade, { readonly error: unknown }> {
  return grade.status === 'grader_error' || grade.status === 'timeout';
}

export interface GradeContext {
  /** Aborted when the run ends; graders that wait for something hand it on. */
  readonly signal?: AbortSignal;
}

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
  grade(answer: Answer<P>, context?: GradeContext): Grade | Promise<Grade>;
}

/** The prompt of a problem in this environment. */
export function promptOf<P extends Problem>(environment: Environment<P>, problem: P, tokenizer: Tokenizer): number[] {
  return environment.prompt?.(problem, tokenizer) ?? tokenizer.encode(problem.question);
}
