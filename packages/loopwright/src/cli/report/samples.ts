/** Samples of the same problems at several steps, chosen without holding all samples in memory. */
import { type RunSample, readSamples } from '@loopwright/loops/node';

export interface ComparedProblem {
  readonly question: string;
  /** The first sample at each chosen step, in order. */
  readonly samples: readonly RunSample[];
}

const problems = 12;
const columns = 4;

/** Problems that were sampled at the most steps, those of validations first; each at up to four steps, from the first to the last. */
export async function comparedSamples(folder: string): Promise<ComparedProblem[]> {
  const steps = new Map<string, Set<number>>();
  for await (const sample of readSamples(folder)) {
    const own = steps.get(keyOf(sample)) ?? new Set<number>();
    steps.set(keyOf(sample), own.add(sample.step));
  }
  const chosen = [...steps]
    .sort(
      ([a, one], [b, other]) =>
        Number(b.startsWith('validation')) - Number(a.startsWith('validation')) || other.size - one.size,
    )
    .slice(0, problems);
  const wanted = new Map(chosen.map(([key, own]) => [key, spread([...own].sort((a, b) => a - b))]));
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
    return first === undefined ? [] : [{ question: first.question === '' ? first.problem : first.question, samples }];
  });
}

function keyOf({ type, problem }: RunSample): string {
  return `${type} ${problem}`;
}

/** The first, the last, and some between. */
function spread(steps: readonly number[]): Set<number> {
  if (steps.length <= columns) return new Set(steps);
  return new Set(
    Array.from({ length: columns }, (_, i) => steps[Math.round((i * (steps.length - 1)) / (columns - 1))]!),
  ); // true: within the list
}
