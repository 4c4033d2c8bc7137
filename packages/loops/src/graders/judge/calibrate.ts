/** How far a judge agrees with people, on answers that people have labelled. */
import { complaint } from '@loopwright/protocol';
import type { Judge } from './judge.js';
import type { JudgedAnswer } from './prompt.js';

export interface LabelledAnswer extends JudgedAnswer {
  /** On the judge's scale, by people. */
  readonly label: number;
}

export interface CalibrateOptions {
  /** What counts as good, from here on; default the middle of the scale. */
  readonly threshold?: number;
  readonly signal?: AbortSignal;
}

/** Answers that the judge gave no readable score count as disagreement, and are left out of `spearman`. */
export interface Calibration {
  readonly count: number;
  readonly unreadable: number;
  /** Share on the same side of the threshold. */
  readonly agreement: number;
  /** Cohen's kappa of good and bad: agreement beyond chance. NaN where people or judge have used one class only. */
  readonly kappa: number;
  /** Rank correlation of scores and labels, ties by mean ranks. NaN where either doesn't vary. */
  readonly spearman: number;
  /** Readable scores: good by both, by the judge alone, by people alone, by neither. */
  readonly confusion: {
    readonly both: number;
    readonly judgeOnly: number;
    readonly peopleOnly: number;
    readonly neither: number;
  };
}

/**
 * Has the judge rate every labelled answer.
 *
 * @throws `invalid_argument` for no answers or a label off the scale; what the judge's endpoint throws
 */
export async function calibrateJudge(
  judge: Judge,
  answers: readonly LabelledAnswer[],
  { threshold = (judge.scale.min + judge.scale.max) / 2, signal }: CalibrateOptions = {},
): Promise<Calibration> {
  const { min, max } = judge.scale;
  if (answers.length === 0) throw complaint({ field: 'answers', expected: 'at least one', got: 'none' });
  for (const [i, { label }] of answers.entries())
    if (!(label >= min && label <= max))
      throw complaint({ field: `answers[${i}].label`, expected: `from ${min} to ${max}`, got: String(label) });
  const ratings = await Promise.all(answers.map(({ label: _, ...answer }) => judge.rate(answer, signal)));
  const pairs = ratings.flatMap((rating, i): Pair[] =>
    rating.status === 'ok' ? [[rating.score, answers[i]!.label]] : [],
  );
  const count = (test: (judge: boolean, people: boolean) => boolean): number =>
    pairs.filter(([score, label]) => test(score >= threshold, label >= threshold)).length;
  const confusion = {
    both: count((a, b) => a && b),
    judgeOnly: count((a, b) => a && !b),
    peopleOnly: count((a, b) => !a && b),
    neither: count((a, b) => !a && !b),
  };
  return {
    count: answers.length,
    unreadable: answers.length - pairs.length,
    agreement: (confusion.both + confusion.neither) / answers.length,
    kappa: kappaOf(confusion, answers.length),
    spearman: correlation(ranks(pairs.map(([score]) => score)), ranks(pairs.map(([, label]) => label))),
    confusion,
  };
}

type Pair = readonly [score: number, label: number];

/** Unreadable answers are in `count` alone: they lower the agreement that was observed, not the one by chance. */
function kappaOf({ both, judgeOnly, peopleOnly, neither }: Calibration['confusion'], count: number): number {
  const readable = both + judgeOnly + peopleOnly + neither;
  const [judgeGood, peopleGood] = [(both + judgeOnly) / readable, (both + peopleOnly) / readable];
  const isConstant = [judgeGood, peopleGood].some((share) => share === 0 || share === 1);
  if (readable === 0 || isConstant) return Number.NaN;
  const byChance = judgeGood * peopleGood + (1 - judgeGood) * (1 - peopleGood);
  return ((both + neither) / count - byChance) / (1 - byChance);
}

function ranks(values: readonly number[]): number[] {
  return values.map((value) => {
    const below = values.filter((other) => other < value).length;
    const same = values.filter((other) => other === value).length;
    return below + (same + 1) / 2;
  });
}

function correlation(xs: readonly number[], ys: readonly number[]): number {
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const [x0, y0] = [mean(xs), mean(ys)];
  const sum = (f: (x: number, y: number) => number): number =>
    xs.reduce((total, x, i) => total + f(x - x0, ys[i]! - y0), 0);
  return sum((x, y) => x * y) / Math.sqrt(sum((x) => x * x) * sum((_, y) => y * y));
}
