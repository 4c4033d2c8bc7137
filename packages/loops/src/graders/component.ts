/** What a grader is made of: named components, each a score of one answer. */
import { complaint } from '@loopwright/protocol';
import type { Answer, Problem } from '../environments/environment.js';

/** What a component thinks of an answer. */
export type Score =
  | {
      readonly status: 'ok';
      readonly score: number;
      /** How the score came about, for people: may quote the answer, so it is content and not for logs. */
      readonly trace?: string;
    }
  | {
      /** The answer isn't in the form that was asked for. Its score is the model's doing, so it counts; default 0. */
      readonly status: 'unparsed';
      readonly score?: number;
      readonly reason: string;
    }
  /** The component doesn't apply to this problem: it is left out of the sum, which is not the same as a score of 0. */
  | { readonly status: 'not_applicable' };

export interface ScoreContext {
  /** Aborted when the component's time is over or the run ends. Components that start work hand it on. */
  readonly signal: AbortSignal;
}

/**
 * One named part of a grader. It may throw: that is a `grader_error` of the answer, never a reward.
 *
 * A plain number stands for a score, and `null` for "does not apply".
 */
export interface Component<P extends Problem = Problem> {
  /** Unique in its grader; metrics are named `reward/<name>`. */
  readonly name: string;
  /** Factor of the score in the reward; default 1. 0 measures only: such a component can't fail an answer. */
  readonly weight?: number;
  /** In place of the grader's; `Infinity` for work that has a deadline of its own, such as a sandbox with a queue. */
  readonly timeoutMs?: number;
  score(answer: Answer<P>, context: ScoreContext): number | null | Score | Promise<number | null | Score>;
}

/** What every builder of components takes. */
export interface ComponentOptions {
  /** Default: the builder's own. */
  readonly name?: string;
  /** Default 1; 0 measures only. */
  readonly weight?: number;
}

/** Where the right answer of a problem stands; default `problem.answer`. */
export interface GoldOptions<P extends Problem> {
  readonly gold?: (problem: P) => string;
}

/**
 * The right answer of a problem. A row without one is a fault of the data, not of the model.
 *
 * @throws `invalid_argument` when it is no text or blank
 */
export function goldOf<P extends Problem>(problem: P, { gold }: GoldOptions<P>): string {
  const text: unknown = gold === undefined ? problem.answer : gold(problem);
  if (typeof text === 'string' && text.trim() !== '') return text;
  throw complaint({
    field: gold === undefined ? 'problem.answer' : 'gold(problem)',
    expected: 'the right answer as text',
    got: typeof text === 'string' ? 'blank text' : text === null ? 'null' : typeof text,
    remedy: 'leave out the problem, or give it an answer',
  });
}

/** Name and weight as a component carries them. */
export function labelled(
  fallback: string,
  { name = fallback, weight = 1 }: ComponentOptions,
): { readonly name: string; readonly weight: number } {
  return { name, weight };
}
