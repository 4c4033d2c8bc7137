/** The part `data`: problems that can be read again, with none of the faults that make a run worthless, and short enough. */
import type { Tokenizer } from '@loopwright/text';
import { type Problem, promptOf } from '../environments/environment.js';
import { dataFindings } from '../preflight/data-findings.js';
import { createRandom } from '../random.js';
import { readProblems } from '../tasks/read-problems.js';
import { isAnswerEnvironment, type ProblemSource, type Task } from '../tasks/task.js';
import { SmokeFailure } from './smoke-words.js';

export interface SmokeDataOptions {
  readonly tokenizer: Tokenizer;
  /** Problems to take at most. */
  readonly prompts: number;
  /** Tokens of prompt and answer at most. */
  readonly contextLength: number;
  readonly maxTokens: number;
  readonly seed: number;
  readonly signal?: AbortSignal;
}

export interface SmokeData<P extends Problem> {
  readonly problems: readonly P[];
  readonly heldOut: readonly P[] | undefined;
  readonly seen: string;
}

export async function smokeData<P extends Problem>(
  task: Task<P>,
  { tokenizer, prompts, contextLength, maxTokens, seed, signal }: SmokeDataOptions,
): Promise<SmokeData<P>> {
  const { environment } = task;
  const read = async (field: string, source: ProblemSource<P>): Promise<readonly P[]> => {
    const options = { field, ...(signal === undefined ? {} : { signal }) };
    const problems = await readProblems(source, options);
    const again = await readProblems(source, options);
    const isSame = problems.length === again.length && problems.every(({ id }, i) => id === again[i]?.id);
    if (isSame) return problems;
    throw new SmokeFailure(
      `${field} gave other problems when it was read a second time`,
      'let it give the same problems, in the same order, each time: a run that is resumed reads it again',
    );
  };
  const drawn = (): P[] => {
    const random = createRandom(seed);
    const all = Array.from({ length: prompts }, () => environment.draw(random));
    return [...new Map(all.map((problem) => [problem.id, problem])).values()];
  };
  const train = task.train === undefined ? drawn() : await read('task.train', task.train);
  const heldOut = task.heldOut === undefined ? undefined : await read('task.heldOut', task.heldOut);
  // Few prompts are a matter of preflight: the parts work with one.
  const stops = dataFindings({ train, isListed: false, heldOut, tooLong: 0 }).filter(({ level }) => level === 'stop');
  const [first] = stops;
  if (first !== undefined)
    throw new SmokeFailure(stops.map(({ name, seen }) => `${name}: ${seen}`).join('; '), first.remedy);
  const some = createRandom(seed)
    .shuffle([...train])
    .slice(0, prompts);
  const fits = isAnswerEnvironment(environment)
    ? some.filter((problem) => promptOf(environment, problem, tokenizer).length + maxTokens <= contextLength)
    : some;
  const long = some.length - fits.length;
  if (fits.length === 0)
    throw new SmokeFailure(
      `none of ${some.length} prompts fits ${contextLength} tokens, with ${maxTokens} for an answer`,
      'shorten the prompts: the bundled model has a token for each character, and no long ones can be tried on it',
    );
  const leftOut = long === 0 ? '' : `, ${long} longer than the bundled model takes`;
  const held = heldOut === undefined ? 'none held out' : `${heldOut.length} held out`;
  return { problems: fits, heldOut, seen: `${fits.length} of ${train.length} prompts taken${leftOut}; ${held}` };
}
