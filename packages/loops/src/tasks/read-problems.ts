/** The problems of a task as a list. */
import { complaint, LoopwrightError } from '@loopwright/protocol';
import type { Problem } from '../environments/environment.js';
import { checkProblems } from './define-task.js';
import type { ProblemSource } from './task.js';

/** Their ids are kept in a map, which holds 2²⁴ at most: a source with more is one that doesn't end. */
const mostProblems = 10_000_000;

export interface ReadProblemsOptions {
  /** How they are called in messages; default `problems`. */
  readonly field?: string;
  readonly signal?: AbortSignal;
}

/**
 * All problems of a source, in order.
 *
 * @throws `invalid_argument` where there are none, one has no id, question or answer, or two have the same id, or there are more than ten million; `cancelled`; what the source throws
 */
export async function readProblems<P extends Problem>(
  source: ProblemSource<P>,
  { field = 'problems', signal }: ReadProblemsOptions = {},
): Promise<readonly P[]> {
  const given = typeof source === 'function' ? source() : source;
  const problems: P[] = [];
  if (Array.isArray(given))
    problems.push(...(given as readonly P[])); // true: not an async iterable
  else if (Symbol.asyncIterator in Object(given)) {
    for await (const problem of given as AsyncIterable<P>) {
      // true: it has an iterator
      problems.push(problem);
      if (problems.length > mostProblems) throw tooMany(field);
      // A source that never waits would keep the thread, and Ctrl-C with it.
      if (problems.length % 10_000 === 0) await new Promise((resolve) => setTimeout(resolve));
      if (signal?.aborted === true) throw cancelled(signal);
    }
  } else throw complaint({ field, expected: 'a list of problems or an async iterable', got: typeof given });
  checkProblems(field, problems);
  return problems;
}

function tooMany(field: string): LoopwrightError {
  return complaint({
    field,
    expected: `at most ${mostProblems} problems`,
    got: 'more',
    remedy: 'let the source end, or leave the field out: problems are then drawn from the environment',
  });
}

function cancelled(signal: AbortSignal): LoopwrightError {
  return new LoopwrightError({
    code: 'cancelled',
    message: 'the reading was cancelled by its caller',
    cause: signal.reason,
  });
}
