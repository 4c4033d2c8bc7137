/** The part `grader`: the gate, on the task's own cases and bad ones made from them. */
import type { Problem } from '../environments/environment.js';
import { testGrader } from '../grader-gate/test-grader.js';
import { readProblems } from '../tasks/read-problems.js';
import type { Task } from '../tasks/task.js';
import { SmokeFailure, SmokeNeeds } from './smoke-words.js';

export interface SmokeGraderOptions {
  /** Milliseconds of one grading, while no other ends. */
  readonly limitMs: number;
  readonly onProgress: (graded: number, of: number) => void;
  readonly signal: AbortSignal | undefined;
}

export async function smokeGrader<P extends Problem>(
  task: Task<P>,
  { limitMs, onProgress, signal }: SmokeGraderOptions,
): Promise<string> {
  const own = signal === undefined ? {} : { signal };
  const judged = await withProblems(task, signal);
  const { result } = await testGrader(judged, { repeats: 2, timeoutMs: limitMs, onProgress, ...own });
  const { cases, findings } = result;
  const stops = findings.filter(({ level }) => level === 'stop');
  const [first] = stops;
  if (first !== undefined)
    throw new SmokeFailure(
      stops.map(({ name, seen }) => `${name}: ${seen}`).join('; '),
      `${first.remedy} (loopwright grader test shows the cases)`,
    );
  return `right about ${cases.labelled} labelled completions and ${cases.made} made, twice each`;
}

/** The problems whose answers stand for good cases where nobody labelled any, read: that they can't be is no fault of the grader. */
async function withProblems<P extends Problem>(task: Task<P>, signal: AbortSignal | undefined): Promise<Task<P>> {
  if (task.train === undefined || task.cases?.some(({ label }) => label === 'good') === true) return task;
  try {
    return { ...task, train: await readProblems(task.train, signal === undefined ? {} : { signal }) };
  } catch (error) {
    if (signal?.aborted === true) throw error;
    throw new SmokeNeeds('data');
  }
}
