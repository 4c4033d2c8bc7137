/** Answers to the same few problems before the first step, in the middle and after the last, so that people see what training changes. */
import { createRandom, mixSeed, type Random } from '../random.js';
import { wholeNumber } from './options.js';

export interface FixedSamplesOptions<P> {
  /** To choose from; default those of `validation`, else those that are trained on, else such as the environment draws. */
  readonly problems?: readonly P[];
  /** Chosen by the seed of the run; default 20, or all where there are fewer. */
  readonly count?: number;
}

/** One greedy answer, or episode, to each: what changes between two steps is the model's doing alone. */
export interface FixedSamples<A> {
  readonly type: 'fixed-samples';
  /** After which they were sampled; 0 is before the first. */
  readonly step: number;
  readonly totalSteps: number;
  /** In the order of the chosen problems, the same each time. Content, for people, not for logs. */
  readonly answers: readonly A[];
}

/** Keeps this seed apart from those of the run's problems and samples. */
const stream = 0x5a3;

/** @throws `invalid_argument` for a count below 1, or no problems */
export function chooseFixed<P>(
  { problems, count = 20 }: FixedSamplesOptions<P>,
  {
    seed,
    fallback,
    draw,
  }: { readonly seed: number; readonly fallback: readonly P[] | undefined; readonly draw: (random: Random) => P },
): P[] {
  wholeNumber('fixedSamples.count', count, 1);
  const random = createRandom(mixSeed(seed, stream));
  const from = problems ?? fallback;
  if (from === undefined) return Array.from({ length: count }, () => draw(random));
  wholeNumber('fixedSamples.problems.length', from.length, 1);
  return random.shuffle(from).slice(0, count);
}

/** Whether it is the start, the middle or the end. */
export function isFixedStep(step: number, totalSteps: number): boolean {
  return step === 0 || step === totalSteps || step === Math.round(totalSteps / 2);
}
