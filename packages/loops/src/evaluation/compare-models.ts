/** Two models on the same held-out problems: how often each is right, and what an answer takes of tokens and time. */
import { complaint } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import { type Environment, isFailure, type Problem, promptOf } from '../environments/environment.js';
import type { EpisodeEnvironment } from '../episodes/environment.js';
import type { EpisodeRollout } from '../episodes/run-episode.js';
import { mean } from '../statistics/advantages.js';
import { isCorrect } from '../statistics/correct-reward.js';
import { comparePairs, type PairedComparison } from '../statistics/paired.js';
import { quantiles } from '../statistics/quantiles.js';
import { resolveSettings } from '../tasks/settings.js';
import { isAnswerEnvironment, type TaskSettings } from '../tasks/task.js';
import type { Sampler } from '../training/clients.js';
import { evaluate } from '../training/evaluate.js';
import { evaluateEpisodes, isUnjudged } from '../training/evaluate-episodes.js';
import { wholeNumber } from '../training/options.js';

export interface CompareModelsOptions<P extends Problem> {
  readonly environment: Environment<P> | EpisodeEnvironment<P>;
  /** Problems that neither was trained on. */
  readonly problems: readonly P[];
  /** What training began with, and what came of it. */
  readonly start: Sampler;
  readonly candidate: Sampler;
  readonly tokenizer: Tokenizer;
  /** Those of the task: `maxTokens`, `maxTurns` and `correctReward` count. */
  readonly settings?: TaskSettings;
  /** Problems that are also answered alone, one model after the other, for the time that an answer takes; default 20. 0 measures none. */
  readonly timed?: number;
  /** Problems at once; default 32. */
  readonly concurrency?: number;
  /** `right`: of the problems so far, from two that both answered. */
  readonly onProgress?: (done: number, of: number, right?: PairedComparison) => void;
  readonly signal?: AbortSignal;
  /** Milliseconds; default the performance clock. */
  readonly now?: () => number;
}

/** Milliseconds of an answer that is asked for alone. */
export interface AnswerTimes {
  readonly p50Ms: number;
  readonly p95Ms: number;
  /** All milliseconds over all sampled tokens. */
  readonly msPerToken: number;
}

export interface ModelComparison {
  /** Of right (1) and wrong (0). */
  readonly right: PairedComparison;
  /** Of rewards, where some are neither 0 nor 1. */
  readonly reward?: PairedComparison;
  /** Problems that were left out because an answer to them could not be judged. */
  readonly unjudged: number;
  /** Sampled tokens of an answer. */
  readonly tokens: PairedComparison;
  /** Mean tokens of the prompts of an answer: of episodes, all that was read besides what was sampled. */
  readonly promptTokens: { readonly start: number; readonly candidate: number };
  /** Absent where none was measured. Taken on one machine at one time: compare the two, not runs. */
  readonly latency?: { readonly n: number; readonly start: AnswerTimes; readonly candidate: AnswerTimes };
}

/** What is known of an answer or episode. */
interface Judged {
  readonly reward: number | undefined;
  readonly tokens: number;
  readonly promptTokens: number;
  readonly milliseconds: number;
}

/**
 * One greedy answer, or episode, of each model to each problem, in pairs.
 *
 * @throws `invalid_argument` for fewer than two problems that both answered; `cancelled`, `grader_failed`, and what the client throws
 * @see comparePairs for the intervals
 */
export async function compareModels<P extends Problem>(options: CompareModelsOptions<P>): Promise<ModelComparison> {
  const { problems, start, candidate, timed = 20, concurrency = 32, onProgress, settings } = options;
  wholeNumber('problems.length', problems.length, 2);
  wholeNumber('timed', timed, 0);
  wholeNumber('concurrency', concurrency, 1);
  const { correctReward } = resolveSettings(settings);
  const pairs: Pair[] = [];
  for (let at = 0; at < problems.length; at += concurrency) {
    const part = problems.slice(at, at + concurrency);
    const before = await answersOf(start, part, options);
    const after = await answersOf(candidate, part, options);
    pairs.push(...before.map((each, i) => [each, after[i]!] as const)); // one for each problem
    const judged = judgedOf(pairs);
    onProgress?.(pairs.length, problems.length, judged.length < 2 ? undefined : rightOf(judged, correctReward));
  }
  const judged = judgedOf(pairs);
  if (judged.length < 2)
    throw complaint({
      field: 'problems',
      expected: 'two or more whose answers can be judged',
      got: `${judged.length} of ${pairs.length}`,
      remedy: 'mend the grader: loopwright grader test',
    });
  const compare = (of: (answer: Judged) => number): PairedComparison =>
    comparePairs(
      judged.map(([a]) => of(a)),
      judged.map(([, b]) => of(b)),
    );
  const worth = ({ reward = 0 }: Judged): number => reward;
  const isGraded = judged.flat().some((answer) => worth(answer) !== 0 && worth(answer) !== 1);
  const latency = timed === 0 ? undefined : await timesOf(problems.slice(0, timed), options);
  return {
    right: rightOf(judged, correctReward),
    ...(isGraded ? { reward: compare(worth) } : {}),
    unjudged: pairs.length - judged.length,
    tokens: compare(({ tokens }) => tokens),
    promptTokens: {
      start: mean(judged.map(([a]) => a.promptTokens)),
      candidate: mean(judged.map(([, b]) => b.promptTokens)),
    },
    ...(latency === undefined ? {} : { latency }),
  };
}

type Pair = readonly [Judged, Judged];

function judgedOf(pairs: readonly Pair[]): Pair[] {
  return pairs.filter((pair) => pair.every(({ reward }) => reward !== undefined));
}

function rightOf(judged: readonly Pair[], correctReward: number): PairedComparison {
  const value = ({ reward = 0 }: Judged): number => (isCorrect(reward, correctReward) ? 1 : 0);
  return comparePairs(
    judged.map(([a]) => value(a)),
    judged.map(([, b]) => value(b)),
  );
}

type AnswerOptions<P extends Problem> = Pick<
  CompareModelsOptions<P>,
  'environment' | 'tokenizer' | 'settings' | 'signal' | 'now'
>;

async function answersOf<P extends Problem>(
  sampler: Sampler,
  problems: readonly P[],
  { environment, tokenizer, settings, signal }: AnswerOptions<P>,
): Promise<Judged[]> {
  const { maxTokens, maxTurns, correctReward } = resolveSettings(settings);
  const shared = { tokenizer, problems, maxTokens, correctReward, ...(signal === undefined ? {} : { signal }) };
  if (isAnswerEnvironment(environment)) {
    const { answers } = await evaluate(sampler, { ...shared, environment });
    return answers.map(({ grade, reward, sequence, prompt = [] }) => ({
      reward: isFailure(grade) ? undefined : reward,
      ...{ tokens: sequence.tokens.length, promptTokens: prompt.length, milliseconds: 0 },
    }));
  }
  const { answers } = await evaluateEpisodes(sampler, { ...shared, environment, maxTurns });
  return answers.map((episode) => ({ ...sizesOf(episode), milliseconds: episode.milliseconds }));
}

function sizesOf(episode: EpisodeRollout): Omit<Judged, 'milliseconds'> {
  const segments = episode.sequences.flat();
  return {
    // What was cut off without a reward is wrong, not unknown.
    reward: isUnjudged(episode) ? undefined : (episode.reward ?? 0),
    tokens: segments.reduce((sum, { answer }) => sum + answer.tokens.length, 0),
    promptTokens: segments.reduce((sum, { context }) => sum + context.length, 0),
  };
}

/** One after another and by turns, so that what else the machine does falls on both; the first of each warms up and doesn't count. */
async function timesOf<P extends Problem>(
  problems: readonly P[],
  options: CompareModelsOptions<P>,
): Promise<NonNullable<ModelComparison['latency']>> {
  const { start, candidate } = options;
  const [first] = problems;
  if (first !== undefined) for (const sampler of [start, candidate]) await timeOne(sampler, first, options);
  const times: { readonly start: Timed[]; readonly candidate: Timed[] } = { start: [], candidate: [] };
  for (const problem of problems) {
    times.start.push(await timeOne(start, problem, options));
    times.candidate.push(await timeOne(candidate, problem, options));
  }
  return { n: problems.length, start: summary(times.start), candidate: summary(times.candidate) };
}

type Timed = Pick<Judged, 'tokens' | 'milliseconds'>;

async function timeOne<P extends Problem>(sampler: Sampler, problem: P, options: AnswerOptions<P>): Promise<Timed> {
  const { environment, tokenizer, settings, signal, now = () => performance.now() } = options;
  if (!isAnswerEnvironment(environment)) return (await answersOf(sampler, [problem], options))[0]!; // of one problem
  const { maxTokens } = resolveSettings(settings);
  const { stop } = environment;
  const begun = now();
  const { sequences } = await sampler.sample(promptOf(environment, problem, tokenizer), {
    ...{ numSamples: 1, temperature: 0, maxTokens },
    ...(stop === undefined ? {} : { stop }),
    ...(signal === undefined ? {} : { signal }),
  });
  return { milliseconds: now() - begun, tokens: sequences[0]?.tokens.length ?? 0 };
}

function summary(times: readonly Timed[]): AnswerTimes {
  const [p50Ms, p95Ms] = quantiles(
    times.map(({ milliseconds }) => milliseconds),
    [0.5, 0.95],
  );
  const sum = (of: (one: Timed) => number): number => times.reduce((total, one) => total + of(one), 0);
  const tokens = sum((one) => one.tokens);
  // true: one for each share
  return { p50Ms: p50Ms!, p95Ms: p95Ms!, msPerToken: sum((one) => one.milliseconds) / Math.max(1, tokens) };
}
