/** How many problems a model solves. */
import type { Tokenizer } from '@loopwright/text';
import { type Environment, isFailure, type Problem } from '../environments/environment.js';
import { type Interval, wilsonInterval } from '../statistics/intervals.js';
import type { Sampler } from './clients.js';
import { finite, type Metrics } from './grpo-metrics.js';
import { numberWithin, wholeNumber } from './options.js';
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
  readonly signal?: AbortSignal;
}

export interface Evaluation<P extends Problem> {
  /** correct / n; NaN when nothing could be graded. */
  readonly accuracy: number;
  readonly correct: number;
  /** Answers that could be graded. */
  readonly n: number;
  /** Wilson, 95 %. */
  readonly interval: Interval;
  readonly unparsed: number;
  /** Answers whose grader threw or took too long: not among `n`. */
  readonly graderErrors: number;
  /** One per problem, in their order. */
  readonly answers: readonly ({ readonly problem: P } & Rollout)[];
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
    signal,
  }: EvaluateOptions<P>,
): Promise<Evaluation<P>> {
  wholeNumber('problems.length', problems.length, 1);
  wholeNumber('maxTokens', maxTokens, 1);
  numberWithin('maxGraderErrorShare', maxGraderErrorShare, { min: 0, max: 1 });
  return withScope(signal, async (scope) => {
    const greedy = { numSamples: 1, temperature: 0, maxTokens };
    const sampled = await sampleGroups({ sampler, environment, tokenizer, problems, scope, ...greedy });
    const groups = await gradeGroups({ groups: sampled, environment, tokenizer, scope });
    checkGrading(groups, maxGraderErrorShare);
    const answers = groups.flatMap(({ problem, rollouts }) => rollouts.map((rollout) => ({ problem, ...rollout })));
    const count = (test: (rollout: Rollout) => boolean): number => answers.filter(test).length;
    const graderErrors = count(({ grade }) => isFailure(grade));
    const correct = count(({ reward }) => reward !== undefined && reward >= correctReward);
    const n = answers.length - graderErrors;
    return {
      accuracy: correct / n,
      correct,
      n,
      interval: n === 0 ? { low: 0, high: 1 } : wilsonInterval(correct, n),
      unparsed: count(({ grade }) => grade.status === 'unparsed'),
      graderErrors,
      answers,
    };
  });
}

/** An evaluation as numbers of a step: `validation/accuracy` (correct / n), its interval `validation/low` and `validation/high`, and counts. */
export function validationMetrics({
  accuracy,
  interval,
  n,
  correct,
  unparsed,
  graderErrors,
}: Omit<Evaluation<Problem>, 'answers'>): Metrics {
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
