/** Grading all cases several times: alone, to tell how long a call takes, then together, as a loop does it. */
import type { Environment, Problem } from '../environments/environment.js';
import type { EpisodeEnvironment } from '../episodes/environment.js';
import { isCorrect } from '../statistics/correct-reward.js';
import { type Scope, withScope } from '../training/scope.js';
import { patientGrading } from './patient-grading.js';
import type { GateCase, GateGrade, GateOutcome } from './words.js';

export interface RunCasesOptions<P extends Problem> {
  readonly environment: Environment<P> | EpisodeEnvironment<P>;
  readonly cases: readonly GateCase<P>[];
  readonly repeats: number;
  readonly concurrency: number;
  readonly timeoutMs: number;
  readonly correctReward: number;
  readonly now: () => number;
  readonly onCase?: ((each: GateCase<P>) => void) | undefined;
  /** `of` falls where a case took too long, by the times that it would have been graded again. */
  readonly onGraded?: ((done: number, of: number) => void) | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface CasesRun<P extends Problem> {
  readonly outcomes: readonly GateOutcome<P>[];
  /** Milliseconds of each call that ran alone and ended in time. */
  readonly aloneMs: readonly number[];
  /** Calls that ended in time, and how long it took until the last of them did. */
  readonly together: { readonly calls: number; readonly ms: number; readonly concurrency: number };
}

/** Calls alone at most: enough for a 95 % point, and slow graders are not waited for all their time. */
const alone = 40;

/** @throws `cancelled`; `grader_timeout` where the first three gradings, or twice `concurrency` in a row, take too long */
export function runCases<P extends Problem>(run: RunCasesOptions<P>): Promise<CasesRun<P>> {
  return withScope(run.signal, (scope) => runWithin(scope, run));
}

async function runWithin<P extends Problem>(scope: Scope, run: RunCasesOptions<P>): Promise<CasesRun<P>> {
  const { environment, cases, repeats, concurrency, timeoutMs, correctReward, now } = run;
  const grades: GateGrade[][] = cases.map(() => []);
  let done = 0;
  let of = cases.length * repeats;
  const grade = patientGrading({ environment, concurrency, timeoutMs, scope });
  /** Whether it took too long: a completion that did is not graded again, as every repeat would be waited for as long. */
  const isLate = (i: number): boolean => grades[i]!.at(-1)?.status === 'timeout';
  const gradeOne = async (i: number): Promise<void> => {
    run.onCase?.(cases[i]!);
    grades[i]!.push(await grade(cases[i]!));
    done += 1;
    if (isLate(i)) of -= repeats - grades[i]!.length;
    run.onGraded?.(done, of);
  };
  // Spread over the cases, since those of a kind stand together.
  const stride = Math.max(1, Math.floor(cases.length / alone));
  const first = cases.map((_, i) => i).filter((i) => i % stride === 0 && i / stride < alone);
  const aloneMs: number[] = [];
  for (const i of first) {
    const start = now();
    await gradeOne(i);
    if (!isLate(i)) aloneMs.push(now() - start);
  }
  const isToCome = (i: number): boolean => grades[i]!.length < repeats && !isLate(i);
  const seen = new Set(first);
  /** One place for each case: it stands here again once it was graded in time. */
  const queue = [...cases.map((_, i) => i).filter((i) => !seen.has(i)), ...first.filter(isToCome)];
  const start = now();
  // Not more than cases: one that is under way isn't begun again.
  const together = { calls: 0, ms: 0, concurrency: Math.min(concurrency, queue.length) };
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < queue.length; at = next++) {
      const i = queue[at]!; // in range
      await gradeOne(i);
      if (isToCome(i)) queue.push(i);
      if (isLate(i)) continue;
      together.calls += 1;
      together.ms = now() - start; // what takes too long at the end is no part of it
    }
  };
  await Promise.all(Array.from({ length: together.concurrency }, worker));
  const outcomes = cases.map((each, i): GateOutcome<P> => {
    const own = grades[i]!; // there is one list for each case
    const grade = own[0]!; // every case was graded at least once
    const accepted = acceptedBy(grade, correctReward);
    const isRight = accepted === (each.label === 'good');
    const isStable = new Set(own.map(signature)).size === 1;
    return { case: each, grade, grades: own, accepted, isRight, isStable };
  });
  return { outcomes, aloneMs, together };
}

function acceptedBy(grade: GateGrade, correctReward: number): boolean | undefined {
  if ('reward' in grade) return isCorrect(grade.reward, correctReward);
  return grade.status === 'unfinished' ? false : undefined;
}

/** All that a repeat must come to again. */
function signature(grade: GateGrade): string {
  const parts = grade.status === 'unfinished' ? [] : (grade.components ?? []);
  return JSON.stringify([
    grade.status,
    'reward' in grade ? grade.reward : null,
    parts.map((part) => [part.name, part.status, 'score' in part ? part.score : null]),
  ]);
}
