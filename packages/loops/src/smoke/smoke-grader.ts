/** The part `grader`: the gate, on the task's own cases and bad ones made from them. */
import type { Problem } from '../environments/environment.js';
import { testGrader } from '../grader-gate/test-grader.js';
import type { Task } from '../tasks/task.js';
import { SmokeFailure } from './words.js';

export async function smokeGrader<P extends Problem>(task: Task<P>, signal?: AbortSignal): Promise<string> {
  const { result } = await testGrader(task, { repeats: 2, ...(signal === undefined ? {} : { signal }) });
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
