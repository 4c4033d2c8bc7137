/** Gradings at once, each with its time: one that never ends is told, and graders that let gradings wait for one another are waited for. */
import { LoopwrightError } from '@loopwright/protocol';
import type { Environment, Problem } from '../environments/environment.js';
import type { EpisodeEnvironment } from '../episodes/environment.js';
import type { Scope } from '../training/scope.js';
import { type GivenCompletion, gradeCase } from './grade-case.js';
import type { GateGrade } from './words.js';

/** Of one grading, while no other ends. */
export const gradingTimeoutMs = 30_000;

/** So many at first, or twice as many as go on at once in a row, that all take too long: a thousand others would be waited for in vain, for hours. */
const hopeless = 3;

export interface PatientGradingOptions<P extends Problem> {
  readonly environment: Environment<P> | EpisodeEnvironment<P>;
  /** Gradings at once, at most. */
  readonly concurrency: number;
  readonly timeoutMs: number;
  readonly scope: Scope;
}

/**
 * @returns a function that grades; what throws is a `grader_error`, what takes too long a `timeout`
 * @throws `grader_timeout`, from that function, where the first three gradings, or twice `concurrency` in a row, take too long; the scope's reason
 */
export function patientGrading<P extends Problem>({
  environment,
  concurrency,
  timeoutMs,
  scope,
}: PatientGradingOptions<P>): (given: GivenCompletion<P>) => Promise<GateGrade> {
  /** Of the gradings that go on. */
  const restarts = new Set<() => void>();
  let done = 0;
  let lateInARow = 0;
  return async (given) => {
    let own = (): void => {};
    const onStart = (restart: () => void): void => {
      own = restart;
      restarts.add(restart);
    };
    // A signal of its own for each: dozens of listeners on one make Node warn of a leak.
    const graded = scope.orAborted((signal) => gradeCase(environment, given, { timeoutMs, onStart, signal }));
    const grade = await graded.finally(() => restarts.delete(own));
    // Graders with few places, such as a sandbox, let gradings wait for one another: while some end, none is stuck.
    if (grade.status !== 'timeout') for (const restart of restarts) restart();
    lateInARow = grade.status === 'timeout' ? lateInARow + 1 : 0;
    done += 1;
    if (lateInARow === (lateInARow === done ? hopeless : 2 * concurrency)) throw nothingGraded(lateInARow, timeoutMs);
    return grade;
  };
}

function nothingGraded(count: number, timeoutMs: number): LoopwrightError {
  const remedy = 'let the grader resolve, bound its work, or give it more time';
  return new LoopwrightError({
    code: 'grader_timeout',
    message: `${count} gradings in a row gave no grade within ${timeoutMs / 1000} s each; ${remedy}`,
    details: { field: 'grade', remedy },
  });
}
