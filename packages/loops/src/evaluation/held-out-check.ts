/** Whether problems to be judged by were among those that were trained on. */
import type { Problem } from '../environments/environment.js';
import { problemHash, readMet } from '../runs/met-problems.js';
import { readRecord } from '../runs/run-record.js';

/** Data under these names was not trained on; everything else was. */
const notTrained = new Set(['heldout', 'validation', 'fixed', 'test', 'eval', 'evaluation']);

export interface HeldOutCheck<P extends Problem> {
  /** Problems whose prompt, but for case, white space and Unicode form, was trained on. */
  readonly trained: readonly P[];
  /** Problems that were measured on while it trained: the grader saw answers to them, and people may have chosen by them. */
  readonly validated: readonly P[];
  /** Those that were not trained on, in order: validated ones too. */
  readonly fresh: readonly P[];
  /** Prompts of training that they were compared with. */
  readonly compared: number;
  /** Of these, how many the runs kept; the others are `train`. */
  readonly fromRuns: number;
  /** Data that the run names without prompts, such as that of whole files by a hash: what is in it was not compared. */
  readonly unknown: readonly string[];
}

export interface HeldOutOptions<P extends Problem> {
  /** Folders of the runs that trained the model, earlier ones included. */
  readonly runs: readonly string[];
  /** Problems of the task that are to train on. */
  readonly train?: Iterable<P>;
}

/** @throws `not_found`, `data_invalid` for a folder that holds no run */
export async function checkHeldOut<P extends Problem>(
  problems: readonly P[],
  { runs, train = [] }: HeldOutOptions<P>,
): Promise<HeldOutCheck<P>> {
  const met = new Set<string>();
  const validated = new Set<string>();
  const unknown: string[] = [];
  for (const folder of runs) {
    const named = new Set<string>();
    for await (const { use, prompt } of readMet(folder)) {
      named.add(use);
      const isSeen = use === 'validation';
      if (isTrained(use)) met.add(prompt);
      else if (isSeen) validated.add(prompt);
    }
    const { data } = await readRecord(folder);
    unknown.push(...Object.keys(data).filter((use) => isTrained(use) && !named.has(use)));
  }
  const trained = new Set([...met, ...[...train].map(problemHash)]);
  const hashed = problems.map((problem) => ({ problem, hash: problemHash(problem) }));
  const those = (test: (hash: string) => boolean): readonly P[] =>
    hashed.filter(({ hash }) => test(hash)).map(({ problem }) => problem);
  return {
    trained: those((hash) => trained.has(hash)),
    validated: those((hash) => validated.has(hash) && !trained.has(hash)),
    fresh: those((hash) => !trained.has(hash)),
    compared: trained.size,
    fromRuns: met.size,
    unknown,
  };
}

function isTrained(use: string): boolean {
  return !notTrained.has(use.toLowerCase().replace(/[-_ ]/g, ''));
}
