/** How many problems a model solves. */
import type { Tokenizer } from '@loopwright/text';
import { CallTimes, rolloutTimeoutMs } from '../environments/call-times.js';
import { type Environment, type Grade, isFailure, type Problem } from '../environments/environment.js';
import { type Accuracy, accuracyOf } from '../statistics/accuracy.js';
import { isCorrect } from '../statistics/correct-reward.js';
import type { Sampler } from './clients.js';
import { finite, type Metrics } from './grpo-metrics.js';
import { numberWithin, timeoutWithin, wholeNumber } from './options.js';
import { checkGrading, gradeGroups, type Rollout, sampleGroups } from './rollouts.js';
import { withScope } from './scope.js';

export interface EvaluateOptions<P extends Problem> {
  readonly environment: Environment<P>;
  readonly tokenizer: Tokenizer;
  readonly problems: readonly P[];
  /** New tokens of an answer at most; default 64. */
  readonly maxTokens?: number;
  /** Answers that are worth at least this count as correct; default 1. */
  readonly correctReward?: number;
  /** Share of answers that may fail to be graded; default 0.2. */
  readonly maxGraderErrorShare?: number;
  /** Milliseconds that a grading may take while no other ends; default ten minutes. */
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

/** @typeParam A what is known of each answer: the judged answer, or the episode */
/** Its `n` are the answers that could be graded. */
export interface Evaluation<P, A = { readonly problem: P; readonly prompt?: readonly number[] } & Rollout>
  extends Accuracy {
  readonly unparsed: number;
  /** Answers whose grader threw or took too long: not among `n`. */
  readonly graderErrors: number;
  /** One per problem, in their order. */
  readonly answers: readonly A[];
}

/**
 * One greedy answer to each problem, judged.
 *
 * @throws `invalid_argument` without problems; `cancelled`, `grader_failed`, and what the client throws
 */
export async function evaluate<P extends Problem>(
  sampler: Sampler,
  {
    environment,
    tokenizer,
    problems,
    maxTokens = 64,
    correctReward = 1,
    maxGraderErrorShare = 0.2,
    timeoutMs = rolloutTimeoutMs,
    signal,
  }: EvaluateOptions<P>,
): Promise<Evaluation<P>> {
  wholeNumber('problems.length', problems.length, 1);
  wholeNumber('maxTokens', maxTokens, 1);
  numberWithin('maxGraderErrorShare', maxGraderErrorShare, { min: 0, max: 1 });
  timeoutWithin('timeoutMs', timeoutMs);
  return withScope(signal, async (scope) => {
    const greedy = { numSamples: 1, temperature: 0, maxTokens };
    const sampled = await sampleGroups({ sampler, environment, tokenizer, problems, scope, ...greedy });
    const groups = await gradeGroups({
      groups: sampled,
      environment,
      tokenizer,
      scope,
      times: new CallTimes(timeoutMs),
    });
    checkGrading(groups, maxGraderErrorShare);
    const answers = groups.flatMap(({ problem, prompt, rollouts }) =>
      rollouts.map((rollout) => ({ problem, prompt, ...rollout })),
    );
    return evaluationOf(answers, {
      correctReward,
      isUnjudged: ({ grade }) => isFailure(grade),
    });
  });
}

interface Judged {
  readonly grade?: Grade;
  readonly reward?: number;
}

interface Judging<A> {
  readonly correctReward: number;
  /** Says nothing of the model: not among n. */
  readonly isUnjudged: (answer: A) => boolean;
}

/** Counts what was judged. */
export function evaluationOf<P, A extends Judged>(
  answers: readonly A[],
  { correctReward, isUnjudged }: Judging<A>,
): Evaluation<P, A> {
  const judged = answers.filter((answer) => !isUnjudged(answer));
  const n = judged.length;
  const correct = judged.filter(({ reward }) => reward !== undefined && isCorrect(reward, correctReward)).length;
  return {
    ...accuracyOf(correct, n),
    unparsed: judged.filter(({ grade }) => grade?.status === 'unparsed').length,
    graderErrors: answers.length - n,
    answers,
  };
}

/** An evaluation as numbers of a step: `validation/accuracy` (correct / n), its interval `validation/low` and `validation/high`, and counts. */
export function validationMetrics({
  accuracy,
  interval,
  n,
  correct,
  unparsed,
  graderErrors,
}: Omit<Evaluation<unknown>, 'answers'>): Metrics {
  return finite({
    'validation/accuracy': accuracy,
    'validation/low': interval.low,
    'validation/high': interval.high,
    'validation/n': n,
    'validation/correct': correct,
    'validation/unparsed': unparsed,
    'validation/grader_errors': graderErrors,
  });
}
