/** The cases of a gate: those that people labelled, and what is made of them. */
import type { Problem } from '../environments/environment.js';
import { createRandom } from '../random.js';
import { readProblems } from '../tasks/read-problems.js';
import type { LabelledCompletion, Task } from '../tasks/task.js';
import { badFromGood } from './bad-from-good.js';
import type { GateCase } from './words.js';

export interface GateCasesOptions {
  /** Whether bad completions are made from the good ones, as the task's `badFromGood` says; default true. */
  readonly make?: boolean;
  readonly signal?: AbortSignal;
}

/** Good completions that others are made from, at most: more of a kind tell little more. */
const madeFrom = 30;

/**
 * The labelled cases and, unless `make` is false, bad ones made from the good. A task without good cases has the answers of thirty of its
 * problems in their place: that a problem's `answer`, written as it is, counts as right.
 *
 * @throws what the problems of the task throw when they are read
 */
export async function gateCases<P extends Problem>(
  task: Task<P>,
  { make = true, signal }: GateCasesOptions = {},
): Promise<readonly GateCase<P>[]> {
  const labelled = (task.cases ?? []).map((each): GateCase<P> => ({ ...each, origin: 'labelled' }));
  if (!make) return labelled;
  const made = (each: LabelledCompletion<P>): GateCase<P> => ({ ...each, origin: 'made' });
  const good = labelled.filter(({ label }) => label === 'good').slice(0, madeFrom);
  const answers =
    good.length > 0
      ? []
      : (await problemsOf(task, signal)).map((problem) =>
          made({ problem, label: 'good', completion: problem.answer, kind: 'answer' }),
        );
  const otherAnswers = [...good, ...answers].map(({ problem }) => problem.answer);
  const keyOf = ({ problem, completion }: LabelledCompletion<P>): string => JSON.stringify([problem.id, completion]);
  const known = new Set([...labelled, ...answers].map(keyOf));
  const bads = [...good, ...answers]
    .flatMap((each) => badFromGood(each, { otherAnswers, ...task.badFromGood }))
    .filter((each) => !known.has(keyOf(each)));
  return [...labelled, ...answers, ...bads.map(made)];
}

async function problemsOf<P extends Problem>(task: Task<P>, signal: AbortSignal | undefined): Promise<readonly P[]> {
  if (task.train !== undefined) {
    const given = await readProblems(task.train, { field: 'task.train', ...(signal === undefined ? {} : { signal }) });
    return given.slice(0, madeFrom);
  }
  const random = createRandom(0);
  const drawn = Array.from({ length: madeFrom }, () => task.environment.draw(random));
  return [...new Map(drawn.map((problem) => [problem.id, problem])).values()];
}
