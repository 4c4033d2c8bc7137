/** Which components of a grader are about correctness, which about form, and what each is worth. */
import { mean } from '../statistics/advantages.js';
import type { ComponentWorth, GateGrade, GateOutcome } from './words.js';

/**
 * A component is about correctness when its mean score of good completions is above that of wrong answers in the right form by at least
 * this share of the largest score that was seen: form is as good in both, so that a form component has no such distance.
 */
const tellingShare = 0.5;

/** The bad completions that differ from good ones in nothing but the answer. */
const rightForm: readonly string[] = ['wrong-answer', 'sign', 'epsilon'];

/** Bad ones of the right form, which a component of form likes as much as good ones. */
export function isRightForm({ case: { label, kind } }: GateOutcome): boolean {
  return label === 'bad' && kind !== undefined && rightForm.includes(kind);
}

interface Scored {
  readonly name: string;
  readonly weight: number;
  readonly score: number;
}

function scoresOf(grade: GateGrade): Scored[] {
  if (grade.status === 'unfinished') return [];
  return (grade.components ?? []).flatMap((part) =>
    part.status === 'ok' || part.status === 'unparsed'
      ? [{ name: part.name, weight: part.weight, score: part.score }]
      : [],
  );
}

/**
 * Of each component that scored anything, in the grader's order; none for a grader that is not made of components.
 *
 * @param correctness names that are known to be about correctness, in place of what scores tell
 */
export function componentWorth(
  outcomes: readonly GateOutcome[],
  correctness?: readonly string[],
): readonly ComponentWorth[] {
  const good = outcomes.filter((each) => each.case.label === 'good').map(({ grade }) => scoresOf(grade));
  const wrong = outcomes.filter(isRightForm).map(({ grade }) => scoresOf(grade));
  const all = outcomes.flatMap(({ grade }) => scoresOf(grade));
  return [...new Set(all.map(({ name }) => name))].map((name) => {
    const own = all.filter((each) => each.name === name);
    const weight = own[0]?.weight ?? 0;
    const largest = own.reduce((high, { score }) => Math.max(high, Math.abs(score)), 1);
    const average = (grades: readonly (readonly Scored[])[]): number =>
      mean(grades.flatMap((scores) => scores.filter((each) => each.name === name).map(({ score }) => score)));
    const distance = (average(good) - average(wrong)) * Math.sign(weight);
    const tells = correctness?.includes(name) ?? distance >= tellingShare * largest;
    return { name, weight, role: tells ? 'correctness' : 'form', worth: Math.abs(weight) * largest };
  });
}
