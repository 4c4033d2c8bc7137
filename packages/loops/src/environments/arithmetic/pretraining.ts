/**
 * Text to pretrain a small model on: solved problems of the `pretrain` set, some of them spoilt.
 *
 * The spoilt ones make a base model that knows the task but answers wrongly or in another form for part of the time, which
 * leaves reward something to teach.
 */
import { complaint } from '@loopwright/protocol';
import type { Random } from '../../random.js';
import type { ArithmeticEnvironment } from './environment.js';
import type { ArithmeticProblem } from './problems.js';

/** How an answer is spoilt: one digit changed, digits in reverse, or the right number in a form that doesn't parse. */
export const noiseKinds = ['digit', 'reversed', 'form'] as const;
export type NoiseKind = (typeof noiseKinds)[number];

export interface PretrainingOptions {
  /** Share of examples that are spoilt, 0–1; default 0. */
  readonly noise?: number;
  /** Equally often; default all. */
  readonly noiseKinds?: readonly NoiseKind[];
}

export interface PretrainingExample {
  readonly problem: ArithmeticProblem;
  /** What follows the question; the right answer unless `noise` says otherwise. */
  readonly completion: string;
  readonly noise: NoiseKind | 'none';
}

/** One example. @throws `invalid_argument` when the noise is no share, or no kind of it is allowed */
export function pretrainingExample(
  environment: ArithmeticEnvironment,
  random: Random,
  { noise = 0, noiseKinds: kinds = noiseKinds }: PretrainingOptions = {},
): PretrainingExample {
  if (!(noise >= 0 && noise <= 1)) throw complaint({ field: 'noise', expected: 'from 0 to 1', got: String(noise) });
  const problem = environment.drawFrom('pretrain', random);
  if (random.next() >= noise) return { problem, completion: problem.answer, noise: 'none' };
  const kind = random.pick(kinds);
  return { problem, completion: spoil(problem, kind, random), noise: kind };
}

function spoil({ answer, question }: ArithmeticProblem, kind: NoiseKind, random: Random): string {
  switch (kind) {
    case 'digit':
      return changeDigit(answer, random);
    case 'reversed': {
      const digits = answer.replace('-', '');
      const reversed = (answer.startsWith('-') ? '-' : '') + [...digits].reverse().join('');
      return reversed === answer ? changeDigit(answer, random) : reversed;
    }
    case 'form':
      return random.pick([`=${answer}`, `${answer}=`, question + answer, `+${answer}`]);
    default:
      return kind satisfies never;
  }
}

/** Another digit in one place; the first never becomes 0, so that the length stays that of a number. */
function changeDigit(answer: string, random: Random): string {
  const start = answer.startsWith('-') ? 1 : 0;
  const at = start + random.integer(answer.length - start);
  const old = Number(answer[at]);
  const isFirst = at === start && answer.length - start > 1;
  const digits = [1, 2, 3, 4, 5, 6, 7, 8, 9, ...(isFirst ? [] : [0])].filter((digit) => digit !== old);
  return answer.slice(0, at) + random.pick(digits) + answer.slice(at + 1);
}
