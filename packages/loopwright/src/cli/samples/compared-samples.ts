/** Samples of the same problems at several steps, and the remarkable ones of a step, chosen without holding all samples in memory. */
import { type RunSample, readSamples } from '@loopwright/loops/node';

export interface ComparedProblem {
  /** Its id where it has no question. */
  readonly question: string;
  readonly problem: string;
  /** The first sample at each chosen step, in order. */
  readonly samples: readonly RunSample[];
}

export interface ComparisonSize {
  readonly problems: number;
  /** Steps of a problem at most, from the first to the last. */
  readonly columns: number;
}

const order: Readonly<Record<RunSample['type'], number>> = { fixed: 0, validation: 1, train: 2 };

/** The fixed problems of the run; without any, those of validations; without these, those that were trained on. The ones of the most steps come first. */
export async function comparedSamples(
  folder: string,
  { problems, columns }: ComparisonSize,
): Promise<ComparedProblem[]> {
  const steps = new Map<string, { readonly type: RunSample['type']; readonly own: Set<number> }>();
  for await (const sample of readSamples(folder)) {
    const known = steps.get(keyOf(sample)) ?? { type: sample.type, own: new Set<number>() };
    known.own.add(sample.step);
    steps.set(keyOf(sample), known);
  }
  const kind = [...steps.values()].reduce((least, { type }) => Math.min(least, order[type]), Number.POSITIVE_INFINITY);
  const chosen = [...steps]
    .filter(([, { type }]) => order[type] === kind)
    .sort(([, a], [, b]) => b.own.size - a.own.size)
    .slice(0, problems);
  const wanted = new Map(
    chosen.map(([key, { own }]) => [
      key,
      spread(
        [...own].sort((a, b) => a - b),
        columns,
      ),
    ]),
  );
  const found = new Map<string, Map<number, RunSample>>();
  for await (const sample of readSamples(folder)) {
    const key = keyOf(sample);
    if (wanted.get(key)?.has(sample.step) !== true) continue;
    const own = found.get(key) ?? new Map<number, RunSample>();
    if (!own.has(sample.step)) own.set(sample.step, sample);
    found.set(key, own);
  }
  return chosen.flatMap(([key]) => {
    const samples = [...(found.get(key)?.values() ?? [])].sort((a, b) => a.step - b.step);
    const [first] = samples;
    return first === undefined ? [] : [{ question: questionOf(first), problem: first.problem, samples }];
  });
}

/** The best, worst and longest sample of a step that was trained on; without `step`, of the last that has some. */
export async function markedSamples(folder: string, step?: number): Promise<RunSample[]> {
  let found: RunSample[] = [];
  for await (const sample of readSamples(folder)) {
    if (sample.marks === undefined || (step !== undefined && sample.step !== step)) continue;
    if (sample.step !== found[0]?.step) found = [];
    found.push(sample);
  }
  return found;
}

/** Steps of which {@link markedSamples} finds some, in order. */
export async function markedSteps(folder: string): Promise<number[]> {
  const steps = new Set<number>();
  for await (const { marks, step } of readSamples(folder)) if (marks !== undefined) steps.add(step);
  return [...steps].sort((a, b) => a - b);
}

/** As people are shown it. */
export function questionOf({ question, problem }: Pick<RunSample, 'question' | 'problem'>): string {
  return question === '' ? problem : question;
}

function keyOf({ type, problem }: RunSample): string {
  return `${type} ${problem}`;
}

/** The first, the last, and some between. */
function spread(steps: readonly number[], columns: number): Set<number> {
  if (steps.length <= columns) return new Set(steps);
  const at = (i: number) => steps[Math.round((i * (steps.length - 1)) / Math.max(1, columns - 1))]!; // true: within the list
  return new Set(Array.from({ length: columns }, (_, i) => at(i)));
}
