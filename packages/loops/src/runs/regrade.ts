/** Stored answers graded again, by another version of a grader: whose reward changed, and whose advantage changed its sign. */
import { complaint } from '@loopwright/protocol';
import { type Environment, isFailure, type Problem } from '../environments/environment.js';
import { gradingTimeoutMs, patientGrading } from '../grader-gate/patient-grading.js';
import type { GateGrade } from '../grader-gate/words.js';
import { centerRewards } from '../statistics/advantages.js';
import { timeoutWithin, wholeNumber } from '../training/options.js';
import { type Scope, withScope } from '../training/scope.js';
import { readMet } from './met-problems.js';
import { readSamples } from './read-run.js';
import type { RunSample } from './run-samples.js';

/** Of an advantage: above the mean of its group, at it, or below. */
export type AdvantageSign = 1 | 0 | -1;

/** An answer whose reward, or whose advantage's sign, is another now. */
export interface RegradedSample {
  readonly sample: RunSample;
  /** Absent where the grader failed: then also kept as it was, where failures had a reward in the run. */
  readonly reward: { readonly before?: number; readonly after?: number };
  /** How it is judged now, such as `ok`, `unparsed`, `grader_error`. */
  readonly status: string;
  /** Only of answers for training whose group is stored whole. */
  readonly advantage?: { readonly before: AdvantageSign; readonly after: AdvantageSign };
}

/** An answer that could not be graded now. */
export interface RegradingFailure extends RegradedSample {
  /** What the grader threw. Its message may be content. */
  readonly error: unknown;
}

export interface Regrading {
  /** Answers that were handed to the grader. */
  readonly graded: number;
  /** Answers whose problem is not known any more, or that are episodes: they are left as they are. */
  readonly unknown: number;
  readonly episodes: number;
  /** Of `graded`: another reward, or one where there was none. */
  readonly changed: number;
  /** Of `graded`, and not of `changed`: could not be graded now. */
  readonly failed: number;
  /** Answers whose advantage is known before and after: those of groups that are stored whole, with a reward both times. */
  readonly compared: number;
  /** Of `compared`: from below the mean of the group to above it, or the other way round. */
  readonly flipped: number;
  /** Of `compared`: from 0, in a group of equal rewards or at its mean, to something; and back. */
  readonly gained: number;
  readonly lost: number;
}

export interface RegradeOptions<P extends Problem> {
  readonly environment: Environment<P>;
  /** By id, for runs that did not keep their problems, and for those that JSON can't hold. */
  readonly problems?: Iterable<P>;
  /** Answers at once; default 8. */
  readonly concurrency?: number;
  /** Of one grading, while no other ends: they may wait for one another; default 30 000. */
  readonly timeoutMs?: number;
  /** Told of each answer just before it is graded. */
  readonly onAnswer?: (sample: RunSample) => void;
  /** Called for each answer that changed, in the order in which they are stored. */
  readonly onChange?: (sample: RegradedSample) => void;
  /** Called for each that could not be graded, in place of `onChange`. */
  readonly onFailure?: (failure: RegradingFailure) => void;
  /** Called after each step. */
  readonly onProgress?: (graded: number) => void;
  readonly signal?: AbortSignal;
}

/**
 * Grades the stored answers of a run again; what they say is not run, but by the grader itself. Nothing is written.
 *
 * The sign of an advantage is that of the reward minus the mean of its group, which {@link centerRewards}, `normalizeRewards` and
 * `leaveOneOutRewards` share. What a run took off the rewards of long answers is taken off again.
 *
 * @throws `not_found`, `cancelled`; `grader_timeout` where gradings take too long one after another; `invalid_argument` for a wrong option, and where none of
 *   the stored problems are known
 */
export async function regradeSamples<P extends Problem>(
  folder: string,
  options: RegradeOptions<P>,
): Promise<Regrading> {
  const {
    environment,
    concurrency = 8,
    timeoutMs = gradingTimeoutMs,
    onAnswer,
    onChange,
    onFailure,
    onProgress,
    signal,
  } = options;
  wholeNumber('concurrency', concurrency, 1);
  timeoutWithin('timeoutMs', timeoutMs);
  return withScope(signal, async (scope) => {
    const problems = new Map<string, P>();
    for await (const { id, problem } of readMet(folder))
      if (id !== undefined && problem !== undefined) problems.set(id, problem as unknown as P); // as the environment gave it
    for (const problem of options.problems ?? []) problems.set(problem.id, problem);
    const counts = { graded: 0, unknown: 0, episodes: 0, changed: 0, failed: 0 };
    const signs = { compared: 0, flipped: 0, gained: 0, lost: 0 };
    const grade = patientGrading({ environment, concurrency, timeoutMs, scope });
    for await (const samples of byStep(readSamples(folder))) {
      const grading = { grade, problems, concurrency, scope, onAnswer };
      const graded = (await gradeAll(samples, grading)).map((after, i) => ({ sample: samples[i]!, after })); // one for each
      const known = graded.flatMap(({ sample, after }) => (typeof after === 'string' ? [] : [{ sample, after }]));
      counts.graded += known.length;
      counts.unknown += graded.filter(({ after }) => after === 'unknown').length;
      counts.episodes += graded.filter(({ after }) => after === 'episode').length;
      counts.failed += known.filter(({ after }) => after.failure !== undefined).length;
      const advantages = advantageSigns(known);
      for (const each of known) {
        const { sample, after } = each;
        const advantage = advantages.get(sample);
        const isChanged = after.failure === undefined && sample.reward !== after.reward;
        if (isChanged) counts.changed += 1;
        if (advantage !== undefined) {
          signs.compared += 1;
          if (advantage.before * advantage.after === -1) signs.flipped += 1;
          else if (advantage.before === 0 && advantage.after !== 0) signs.gained += 1;
          else if (advantage.before !== 0 && advantage.after === 0) signs.lost += 1;
        }
        const reward = {
          ...(sample.reward === undefined ? {} : { before: sample.reward }),
          ...(after.reward === undefined ? {} : { after: after.reward }),
        };
        const regraded = { sample, reward, status: after.status, ...(advantage === undefined ? {} : { advantage }) };
        if (after.failure !== undefined) onFailure?.({ ...regraded, ...after.failure });
        else if (isChanged || (advantage !== undefined && advantage.before !== advantage.after)) onChange?.(regraded);
      }
      onProgress?.(counts.graded);
    }
    if (counts.graded === 0 && counts.unknown > 0)
      throw complaint({
        field: 'problems',
        expected: 'the problems of the stored answers',
        got: `none of ${counts.unknown} is known by its id`,
        remedy:
          'regrade with a task that lists them (train, heldOut), or keep samples with a run that notes its problems',
      });
    return { ...counts, ...signs };
  });
}

/** Samples of a step and kind are stored one after another. */
async function* byStep(samples: AsyncIterable<RunSample>): AsyncGenerator<readonly RunSample[]> {
  let part: RunSample[] = [];
  for await (const sample of samples) {
    const [first] = part;
    if (first !== undefined && (first.step !== sample.step || first.type !== sample.type)) {
      yield part;
      part = [];
    }
    part.push(sample);
  }
  if (part.length > 0) yield part;
}

interface Regraded {
  readonly status: string;
  /** Also where a reward is kept that failures had before. */
  readonly failure?: { readonly error: unknown };
  readonly reward?: number;
}

interface Grading<P extends Problem> {
  readonly grade: ReturnType<typeof patientGrading<P>>;
  readonly onAnswer: ((sample: RunSample) => void) | undefined;
  readonly problems: ReadonlyMap<string, P>;
  readonly concurrency: number;
  readonly scope: Scope;
}

async function gradeAll<P extends Problem>(
  samples: readonly RunSample[],
  { grade, problems, concurrency, scope, onAnswer }: Grading<P>,
): Promise<(Regraded | 'unknown' | 'episode')[]> {
  const results: (Regraded | 'unknown' | 'episode')[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    for (let at = next++; at < samples.length; at = next++) {
      scope.check();
      const sample = samples[at]!; // in range
      const problem = problems.get(sample.problem);
      const [segment, more] = sample.segments;
      if (segment === undefined || more !== undefined) results[at] = 'episode';
      else if (problem === undefined) results[at] = 'unknown';
      else {
        const stopReason = segment.stop === 'length' ? ('length' as const) : ('stop' as const);
        onAnswer?.(sample);
        const after = await grade({ problem, completion: segment.text, stopReason });
        const failure = after.status === 'unfinished' || !isFailure(after) ? {} : { failure: { error: after.error } };
        results[at] = { status: after.status, ...failure, ...rewardNow(sample, after) };
      }
    }
  };
  await scope.all(Array.from({ length: Math.min(concurrency, samples.length) }, () => worker));
  return results;
}

/** Undefined of a failure; an answer is never `unfinished`, as an episode can be. */
function rewardIn(grade: GateGrade): number | undefined {
  return grade.status === 'unfinished' || isFailure(grade) ? undefined : grade.reward;
}

function rewardNow({ status, reward, graded }: RunSample, grade: GateGrade): { readonly reward?: number } {
  const now = rewardIn(grade);
  if (now === undefined) {
    const hadFloor = (status === 'grader_error' || status === 'timeout') && reward !== undefined;
    return hadFloor ? { reward } : {};
  }
  if (graded === undefined || reward === undefined) return { reward: now };
  return { reward: now === graded ? reward : now + (reward - graded) };
}

type Advantage = NonNullable<RegradedSample['advantage']>;

function advantageSigns(
  graded: readonly { readonly sample: RunSample; readonly after: Regraded }[],
): ReadonlyMap<RunSample, Advantage> {
  const groups = new Map<string, (typeof graded)[number][]>();
  for (const each of graded) {
    if (each.sample.type !== 'train') continue;
    const key = `${each.sample.group ?? ''} ${each.sample.problem}`;
    groups.set(key, [...(groups.get(key) ?? []), each]);
  }
  const signs = new Map<RunSample, Advantage>();
  for (const group of groups.values()) {
    const [first] = group;
    if (first === undefined || group.length < (first.sample.groupSize ?? 2)) continue;
    const before = signsOf(group.map(({ sample }) => sample.reward));
    const after = signsOf(group.map(({ after: { reward } }) => reward));
    for (const [i, { sample }] of group.entries()) {
      const [was, is] = [before[i], after[i]];
      if (was !== undefined && is !== undefined) signs.set(sample, { before: was, after: is });
    }
  }
  return signs;
}

/** Of each reward; what has none is left out of the mean of its group, and has no sign. */
function signsOf(rewards: readonly (number | undefined)[]): (AdvantageSign | undefined)[] {
  const known = rewards.filter((reward) => reward !== undefined);
  const centered = known.length === 0 ? [] : (centerRewards([known])[0] ?? []);
  let at = 0;
  return rewards.map((reward) => {
    if (reward === undefined) return undefined;
    const value = centered[at++] ?? 0;
    // Rounding of a mean is no side of it.
    if (Math.abs(value) <= 1e-12 * Math.max(1, Math.abs(reward))) return 0;
    return value > 0 ? 1 : -1;
  });
}
