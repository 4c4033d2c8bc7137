/** Answers that the grader can't read are drawn again until it can: the model's own answers, given that their form is right. */
import type { Problem } from '../environments/environment.js';
import { mixSeed } from '../random.js';
import { overProblems, type RateOptions, rateOf } from './sample-rates.js';
import type { FormRate, PromptRate } from './words.js';

export interface DrawAgainOptions<P extends Problem> extends Omit<RateOptions<P>, 'samples'> {
  readonly problems: readonly P[];
  /** What the first draws came to, one for each problem. */
  readonly rates: readonly PromptRate[];
  /** Draws of an answer at most, its first one included. */
  readonly mostDraws: number;
  /** Of an earlier attempt, by id: not drawn again where its bound was the same. */
  readonly earlier: ReadonlyMap<string, FormRate>;
  readonly onForm: ((form: FormRate) => void | Promise<void>) | undefined;
}

/**
 * Rejection sampling: what is left of an answer's draws is exactly the model's distribution given that the grader can read it, whatever
 * the bound, since what is accepted does not depend on how many draws it took. In the order of the problems.
 */
export function drawAgain<P extends Problem>(options: DrawAgainOptions<P>): Promise<FormRate[]> {
  const { problems, rates, mostDraws, earlier, onForm } = options;
  return overProblems(problems, options, async (problem, signal, index) => {
    const kept = earlierForm(earlier, problem.id, mostDraws);
    if (kept !== undefined) return kept;
    const form = await formOf(problem, rates[index]!, { ...options, signal }); // one for each
    await onForm?.(form);
    return form;
  });
}

/** What an earlier attempt came to, under the same bound. */
export function earlierForm(
  earlier: ReadonlyMap<string, FormRate>,
  id: string,
  mostDraws: number,
): FormRate | undefined {
  const form = earlier.get(id);
  return form?.mostDraws === mostDraws ? form : undefined;
}

/** In rounds: each draws once for every answer that is still unread, by a seed of its own. */
async function formOf<P extends Problem>(
  problem: P,
  first: PromptRate,
  { mostDraws, seed, ...options }: DrawAgainOptions<P>,
): Promise<FormRate> {
  let { readable, correct } = readAtFirst(first);
  let neverRead = first.unparsed;
  let [graderErrors, drawnAgain, sampledTokens, prefillTokens] = [0, 0, 0, 0];
  for (let round = 1; round < mostDraws && neverRead > 0; round++) {
    const drawn = await rateOf(problem, { ...options, samples: neverRead, seed: mixSeed(seed, round) });
    const read = readAtFirst(drawn);
    readable += read.readable;
    correct += read.correct;
    neverRead = drawn.unparsed;
    graderErrors += drawn.graderErrors;
    drawnAgain += drawn.sampled;
    sampledTokens += drawn.completionTokens;
    prefillTokens += drawn.prefillTokens;
  }
  const drawn = { graderErrors, drawnAgain, sampledTokens, prefillTokens };
  return { id: problem.id, mostDraws, readable, correct, neverRead, ...drawn };
}

/** An answer that can't be read is not right, whatever it is worth. */
function readAtFirst({ n, unparsed, correct }: PromptRate) {
  const readable = n - unparsed;
  return { readable, correct: Math.min(correct, readable) };
}
