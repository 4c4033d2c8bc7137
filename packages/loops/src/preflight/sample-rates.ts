/** Pass rates of prompts: k completions of each, judged by the real grader. */
import { complaint } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import { CallTimes, rolloutTimeoutMs } from '../environments/call-times.js';
import { type Environment, isFailure, type Problem } from '../environments/environment.js';
import type { EpisodeEnvironment } from '../episodes/environment.js';
import { episodeDatums } from '../episodes/episode-datums.js';
import { runEpisodes } from '../episodes/run-episodes.js';
import { hashText, mixSeed } from '../random.js';
import { isCorrect } from '../statistics/correct-reward.js';
import { isAnswerEnvironment } from '../tasks/task.js';
import type { Sampler } from '../training/clients.js';
import { gradeGroups, sampleGroups } from '../training/rollouts.js';
import { withScope } from '../training/scope.js';
import type { PromptRate } from './words.js';

export interface SampleRatesOptions<P extends Problem> {
  readonly sampler: Sampler;
  readonly tokenizer: Tokenizer;
  readonly environment: Environment<P> | EpisodeEnvironment<P>;
  readonly problems: readonly P[];
  readonly samples: number;
  readonly maxTokens: number;
  /** Of an episode. */
  readonly maxTurns: number;
  readonly temperature: number;
  readonly correctReward: number;
  readonly concurrency: number;
  readonly seed: number;
  /** Of an earlier attempt, by id: not measured again. */
  readonly measured: ReadonlyMap<string, PromptRate>;
  readonly onRate: ((rate: PromptRate) => void | Promise<void>) | undefined;
  readonly signal: AbortSignal | undefined;
}

/** Prompts after which a grader that has judged no completion is taken for broken: sampling the rest would take its time for nothing. */
const triesOfGrader = 10;

/**
 * In the order of the problems. The seed of a prompt is that of its id, so that an attempt that goes on comes to the same. Prompts of which an earlier attempt
 * could grade nothing are measured again.
 *
 * @throws `grader_failed`, with the first failure as cause, when no completion of the first prompts could be graded
 */
export function sampleRates<P extends Problem>(options: SampleRatesOptions<P>): Promise<PromptRate[]> {
  const { problems, measured, onRate } = options;
  let isGraded = [...measured.values()].some(({ n }) => n > 0);
  let failed = 0;
  let first: { readonly error: unknown } | undefined;
  const onGraderError = (error: unknown): void => {
    first ??= { error };
  };
  return overProblems(problems, options, async (problem, signal) => {
    const earlier = measured.get(problem.id);
    if (earlier !== undefined && earlier.n > 0) return earlier;
    const rate = await rateOf(problem, { ...options, signal, onGraderError });
    isGraded ||= rate.n > 0;
    if (rate.graderErrors > 0) failed += 1;
    if (!isGraded && failed >= triesOfGrader) throw brokenGrader(failed, first?.error);
    await onRate?.(rate);
    return rate;
  });
}

function brokenGrader(failed: number, cause: unknown): Error {
  return complaint({
    code: 'grader_failed',
    field: 'grader',
    expected: 'judgements of completions',
    got: `failures for all of the first ${failed} prompts`,
    remedy:
      'mend the grader: LOOPWRIGHT_DEBUG=1 shows the first failure, loopwright grader test tries it without a model',
    cause,
  });
}

/** Some at once; results in the order of the problems. */
export function overProblems<P extends Problem, R>(
  problems: readonly P[],
  { concurrency, signal }: { readonly concurrency: number; readonly signal: AbortSignal | undefined },
  work: (problem: P, signal: AbortSignal, index: number) => Promise<R>,
): Promise<R[]> {
  return withScope(signal, async (scope) => {
    const results: R[] = [];
    let next = 0;
    const worker = async (aborted: AbortSignal): Promise<void> => {
      for (let at = next++; at < problems.length; at = next++) results[at] = await work(problems[at]!, aborted, at); // in range
    };
    await scope.all(Array.from({ length: Math.min(concurrency, problems.length) }, () => worker));
    return results;
  });
}

/** What one prompt's completions come to. */
export interface RateOptions<P extends Problem>
  extends Omit<SampleRatesOptions<P>, 'problems' | 'measured' | 'onRate'> {
  /** Told why a completion could not be graded. */
  readonly onGraderError?: (error: unknown) => void;
}

/** Samples and judges completions of one prompt; the seed is mixed with its id. */
export function rateOf<P extends Problem>(problem: P, options: RateOptions<P>): Promise<PromptRate> {
  const { environment, seed } = options;
  const own = { ...options, seed: mixSeed(seed, hashText(problem.id)) };
  return isAnswerEnvironment(environment)
    ? answersRate(problem, { ...own, environment })
    : episodesRate(problem, { ...own, environment });
}

type Own<P extends Problem, E> = Omit<RateOptions<P>, 'environment'> & { readonly environment: E };

function answersRate<P extends Problem>(problem: P, options: Own<P, Environment<P>>): Promise<PromptRate> {
  const { sampler, tokenizer, environment, samples: numSamples, maxTokens, temperature, seed, correctReward } = options;
  return withScope(options.signal, async (scope) => {
    const shared = { environment, tokenizer, scope };
    const times = new CallTimes(rolloutTimeoutMs);
    const sampling = { numSamples, maxTokens, temperature, seedOf: () => seed };
    const sampled = await sampleGroups({ ...shared, sampler, problems: [problem], ...sampling });
    const [group] = await gradeGroups({ ...shared, times, groups: sampled });
    const { rollouts = [], prompt = [] } = group ?? {};
    for (const { grade } of rollouts) if (isFailure(grade)) options.onGraderError?.(grade.error);
    const completionTokens = rollouts.reduce((sum, { sequence }) => sum + sequence.tokens.length, 0);
    const written = rollouts.filter(({ sequence }) => sequence.tokens.length > 0).length;
    return rate(problem, correctReward, {
      judged: rollouts.map(({ grade, reward, sequence }) => ({
        ...{ reward, isFailed: isFailure(grade), isUnparsed: grade.status === 'unparsed' },
        isCut: sequence.stopReason === 'length',
      })),
      ...{ promptTokens: prompt.length, completionTokens, prefillTokens: prompt.length },
      trainingTokens: written * (prompt.length - 1) + completionTokens, // the last token of each is no input
    });
  });
}

/** As in evaluations: cut off by a limit of turns or tokens counts as what it is worth, or as wrong; what ended without a judgement could not be graded. */
async function episodesRate<P extends Problem>(
  problem: P,
  options: Own<P, EpisodeEnvironment<P>>,
): Promise<PromptRate> {
  const { samples: groupSize, correctReward, signal, onGraderError, ...rest } = options;
  const run = { ...rest, problems: [problem], groupSize, maxFailureShare: 1 };
  const [group] = await runEpisodes({ ...run, ...(signal === undefined ? {} : { signal }) });
  const rollouts = group?.rollouts ?? [];
  for (const { grade, error } of rollouts) {
    const failure = grade !== undefined && isFailure(grade) ? grade.error : error;
    if (failure !== undefined) onGraderError?.(failure);
  }
  const turns = rollouts.flatMap((rollout) => rollout.turns);
  const segments = rollouts.flatMap(({ sequences }) => sequences);
  const prefills = segments.flatMap((sequence) => {
    let before = 0;
    return sequence.map(({ context, answer }) => {
      const prompt = before + context.length;
      before = prompt + answer.tokens.length;
      return prompt;
    });
  });
  const data = rollouts.flatMap((rollout) => episodeDatums({ rollout, advantage: 0 }));
  return rate(problem, correctReward, {
    judged: rollouts.map(({ status, grade, reward, turns: taken }) => ({
      reward,
      isFailed:
        (grade !== undefined && isFailure(grade)) ||
        (reward === undefined && status !== 'turn_limit' && status !== 'context_full'),
      isUnparsed: grade?.status === 'unparsed',
      isCut: status === 'context_full' || taken.some(({ sequence }) => sequence.stopReason === 'length'),
    })),
    promptTokens: segments[0]?.[0]?.context.length ?? 0,
    completionTokens: turns.reduce((sum, { sequence }) => sum + sequence.tokens.length, 0),
    prefillTokens: prefills.reduce((sum, tokens) => sum + tokens, 0),
    trainingTokens: data.reduce((sum, { modelInput }) => sum + modelInput.length, 0),
  });
}

interface Sampled extends Pick<PromptRate, 'promptTokens' | 'completionTokens' | 'prefillTokens' | 'trainingTokens'> {
  readonly judged: readonly {
    readonly reward: number | undefined;
    /** Could not be graded. */
    readonly isFailed: boolean;
    readonly isUnparsed: boolean;
    readonly isCut: boolean;
  }[];
}

function rate(problem: Problem, correctReward: number, { judged, ...tokens }: Sampled): PromptRate {
  const count = (test: (each: Sampled['judged'][number]) => boolean): number => judged.filter(test).length;
  const graderErrors = count(({ isFailed }) => isFailed);
  const n = judged.length - graderErrors;
  const correct = count(
    ({ reward, isFailed }) => !isFailed && reward !== undefined && isCorrect(reward, correctReward),
  );
  return {
    ...{ id: problem.id, n, correct, passRate: n === 0 ? 0 : correct / n, sampled: judged.length },
    unparsed: count(({ isUnparsed }) => isUnparsed),
    truncated: count(({ isCut }) => isCut),
    ...{ graderErrors, ...tokens },
  };
}
