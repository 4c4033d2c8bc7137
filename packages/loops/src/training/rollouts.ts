/** Sampling answers to problems and having them judged. */

import type { SampledTokens } from '@loopwright/client';
import { LoopwrightError } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import type { CallTimes } from '../environments/call-times.js';
import { checkedGrade } from '../environments/checked-grade.js';
import { type Environment, type Grade, isFailure, type Problem, promptOf } from '../environments/environment.js';
import type { Sampler } from './clients.js';
import type { Scope } from './scope.js';

/** One answer of the model, judged. */
export interface Rollout {
  readonly sequence: SampledTokens;
  readonly text: string;
  readonly grade: Grade;
  /** What it is worth to training: the grade's reward, or the floor that was set for failed graders; absent: left out. */
  readonly reward?: number;
}

/**
 * What becomes of an answer that could not be judged (`grader_error`, `timeout`): left out of its group and counted, or
 * trained with a reward that says so, counted as well.
 */
export type OnGraderError = 'exclude' | { readonly floor: number };

/** The answers to one problem. */
export interface RolloutGroup<P extends Problem> {
  readonly problem: P;
  readonly prompt: readonly number[];
  readonly rollouts: readonly Rollout[];
}

/** Answers not yet judged. */
export interface SampledGroup<P extends Problem> {
  readonly problem: P;
  readonly prompt: readonly number[];
  readonly sequences: readonly SampledTokens[];
}

export interface SampleGroupsOptions<P extends Problem> {
  readonly sampler: Sampler;
  readonly environment: Environment<P>;
  readonly tokenizer: Tokenizer;
  readonly problems: readonly P[];
  readonly numSamples: number;
  readonly maxTokens: number;
  readonly temperature: number;
  /** Of each group; the server draws one where absent. */
  readonly seedOf?: (group: number) => number;
  readonly scope: Scope;
}

/** Samples all groups at once. */
export async function sampleGroups<P extends Problem>(options: SampleGroupsOptions<P>): Promise<SampledGroup<P>[]> {
  const { sampler, environment, tokenizer, problems, seedOf, scope, numSamples, maxTokens, temperature } = options;
  const { stop } = environment;
  const prompts = problems.map((problem) => promptOf(environment, problem, tokenizer));
  const outputs = await scope.all(
    prompts.map(
      (prompt, group) => (signal: AbortSignal) =>
        sampler.sample(prompt, {
          numSamples,
          maxTokens,
          temperature,
          ...(stop === undefined ? {} : { stop }),
          ...(seedOf === undefined ? {} : { seed: seedOf(group) }),
          signal,
        }),
    ),
  );
  return problems.map((problem, i) => ({
    problem,
    prompt: prompts[i] ?? [],
    sequences: outputs[i]?.sequences ?? [],
  }));
}

export interface GradeGroupsOptions<P extends Problem> {
  readonly groups: readonly SampledGroup<P>[];
  readonly environment: Environment<P>;
  readonly tokenizer: Tokenizer;
  /** Default `exclude`. */
  readonly onGraderError?: OnGraderError;
  /** Of the gradings of a run: one that takes too long is a `timeout`. */
  readonly times: CallTimes;
  readonly scope: Scope;
}

/** Judges every answer; a grader that throws makes a `grader_error`, never a reward. */
export async function gradeGroups<P extends Problem>({
  groups,
  environment,
  tokenizer,
  onGraderError = 'exclude',
  times,
  scope,
}: GradeGroupsOptions<P>): Promise<RolloutGroup<P>[]> {
  return Promise.all(
    groups.map(async ({ problem, prompt, sequences }) => ({
      problem,
      prompt,
      rollouts: await Promise.all(
        sequences.map(async (sequence): Promise<Rollout> => {
          const text = tokenizer.decode(sequence.tokens);
          const answer = { problem, text, stopReason: sequence.stopReason };
          const grade = await scope.orAborted((signal) => gradeSafely(environment, answer, { times, signal }));
          const reward = rewardOf(grade, onGraderError);
          return { sequence, text, grade, ...(reward === undefined ? {} : { reward }) };
        }),
      ),
    })),
  );
}

/**
 * @param maxGraderErrorShare above this share of answers that could not be judged a run stops, whatever becomes of them
 * @throws `grader_failed` when there are more, with the first failure as cause
 */
export function checkGrading(groups: readonly RolloutGroup<Problem>[], maxGraderErrorShare: number): void {
  const rollouts = groups.flatMap((group) => group.rollouts);
  const failures = rollouts.flatMap(({ grade }) => (isFailure(grade) ? [grade.error] : []));
  if (failures.length <= maxGraderErrorShare * rollouts.length) return;
  throw new LoopwrightError({
    code: 'grader_failed',
    message: `grader: ${failures.length} of ${rollouts.length} answers could not be graded, more than the share of ${maxGraderErrorShare} that a run goes on with; mend the grader (the first failure is the cause of this error)`,
    details: { failed: failures.length, of: rollouts.length, limit: maxGraderErrorShare },
    cause: failures[0],
  });
}

function rewardOf(grade: Grade, onGraderError: OnGraderError): number | undefined {
  if (!isFailure(grade)) return grade.reward;
  return onGraderError === 'exclude' ? undefined : onGraderError.floor;
}

/** What throws, and what is no grade, becomes a `grader_error`; what takes too long a `timeout`. */
async function gradeSafely<P extends Problem>(
  environment: Environment<P>,
  answer: Parameters<Environment<P>['grade']>[0],
  { times, signal }: { readonly times: CallTimes; readonly signal: AbortSignal },
): Promise<Grade> {
  try {
    return checkedGrade(await times.bounded('grade', () => environment.grade(answer, { signal }), signal));
  } catch (error) {
    const isLate = LoopwrightError.isInstance(error) && error.code === 'grader_timeout';
    return { status: isLate ? 'timeout' : 'grader_error', error };
  }
}
