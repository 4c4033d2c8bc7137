/** Many rollouts at once: groups of each problem, in parallel, each with its own time; a slow or broken one never stops the rest. */
import { LoopwrightError } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import { rolloutTimeoutMs } from '../environments/call-times.js';
import { isFailure } from '../environments/environment.js';
import { mixSeed } from '../random.js';
import type { Sampler } from '../training/clients.js';
import { numberWithin, timeoutWithin, wholeNumber } from '../training/options.js';
import { withScope } from '../training/scope.js';
import type { EpisodeEnvironment, EpisodeProblem } from './environment.js';
import { type EpisodeRollout, runEpisode } from './run-episode.js';

export interface RunEpisodesOptions<P extends EpisodeProblem> {
  readonly sampler: Sampler;
  readonly tokenizer: Tokenizer;
  readonly environment: EpisodeEnvironment<P>;
  readonly problems: readonly P[];
  /** Rollouts of each problem; default 8. */
  readonly groupSize?: number;
  /** Answers of the model in an episode at most; default 8. */
  readonly maxTurns?: number;
  /** New tokens of an answer at most; default 512. */
  readonly maxTokens?: number;
  /** Tokens of a whole chat at most; the model's context by default. */
  readonly maxContext?: number;
  /** Default 1; see `GrpoOptions.temperature`. */
  readonly temperature?: number;
  /** Milliseconds of a rollout at most; default ten minutes. */
  readonly timeoutMs?: number;
  /** Rollouts at once; default 64. */
  readonly concurrency?: number;
  /** Share of rollouts that may fail or be without a grade, for whatever reason, before the run stops; default 0.2. */
  readonly maxFailureShare?: number;
  /** Of the environments' states and of the samples; default 0. The same seed gives the same rollouts. */
  readonly seed?: number;
  readonly signal?: AbortSignal;
  /** Called as rollouts end, in that order. */
  readonly onRollout?: (rollout: EpisodeRollout<P>) => void;
  /** Milliseconds; default the performance clock. */
  readonly now?: () => number;
  /** Runs something later and returns how to call that off; default the system's timers. */
  readonly after?: (ms: number, action: () => void) => () => void;
}

/** The rollouts of one problem. */
export interface EpisodeGroup<P extends EpisodeProblem = EpisodeProblem> {
  readonly problem: P;
  readonly rollouts: readonly EpisodeRollout<P>[];
}

/**
 * Runs `groupSize` episodes of each problem.
 *
 * @throws `invalid_argument` at once; `cancelled` when the caller aborts; `rollouts_failed` when more than `maxFailureShare` have failed,
 * with the first failure as cause: all rollouts have ended then
 */
export async function runEpisodes<P extends EpisodeProblem>(
  options: RunEpisodesOptions<P>,
): Promise<EpisodeGroup<P>[]> {
  const run = resolve(options);
  const { problems, signal, onRollout } = options;
  return withScope(signal, async (scope) => {
    const jobs = problems.flatMap((problem, group) =>
      Array.from({ length: run.groupSize }, (_, member) => ({ problem, seed: mixSeed(run.seed, group, member) })),
    );
    const rollouts: EpisodeRollout<P>[] = [];
    let next = 0;
    const worker = async (aborted: AbortSignal): Promise<void> => {
      for (let at = next++; at < jobs.length; at = next++) {
        const rollout = await timed(run, aborted, (limits) => runEpisode({ ...run, ...jobs[at]!, ...limits }));
        rollouts[at] = rollout;
        onRollout?.(rollout);
      }
    };
    await scope.all(Array.from({ length: Math.min(run.concurrency, jobs.length) }, () => worker));
    checkFailures(rollouts, run.maxFailureShare);
    return problems.map((problem, group) => ({
      problem,
      rollouts: rollouts.slice(group * run.groupSize, (group + 1) * run.groupSize),
    }));
  });
}

/** What all episodes of a run have in common. */
export type RunnerOptions<P extends EpisodeProblem> = Omit<
  RunEpisodesOptions<P>,
  'sampler' | 'problems' | 'groupSize' | 'maxFailureShare' | 'seed' | 'signal' | 'onRollout'
>;

export interface OneEpisode<P extends EpisodeProblem> {
  readonly sampler: Sampler;
  readonly problem: P;
  readonly seed: number;
  readonly signal: AbortSignal;
}

/**
 * Runs episodes one by one as they are asked for, of all that are asked for `concurrency` at once; the time of an episode
 * begins with its turn.
 *
 * @returns a function that throws the signal's reason
 */
export function episodeRunner<P extends EpisodeProblem>(
  options: RunnerOptions<P>,
): (episode: OneEpisode<P>) => Promise<EpisodeRollout<P>> {
  const run = limitsOf(options);
  const { tokenizer, environment } = options;
  const waiting: (() => void)[] = [];
  let free = run.concurrency;
  return async ({ signal, ...episode }) => {
    if (free > 0) free -= 1;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await timed(run, signal, (limits) =>
        runEpisode({ ...run, tokenizer, environment, ...episode, ...limits }),
      );
    } finally {
      const next = waiting.shift();
      if (next === undefined) free += 1;
      else next();
    }
  };
}

function resolve<P extends EpisodeProblem>({
  groupSize = 8,
  maxFailureShare = 0.2,
  seed = 0,
  ...rest
}: RunEpisodesOptions<P>) {
  wholeNumber('problems.length', rest.problems.length, 1);
  wholeNumber('groupSize', groupSize, 1);
  numberWithin('maxFailureShare', maxFailureShare, { min: 0, max: 1 });
  const { sampler, tokenizer, environment } = rest;
  return { ...limitsOf(rest), sampler, tokenizer, environment, groupSize, maxFailureShare, seed };
}

function limitsOf<P extends EpisodeProblem>({
  maxTurns = 8,
  maxTokens = 512,
  maxContext = Number.POSITIVE_INFINITY,
  temperature = 1,
  timeoutMs = rolloutTimeoutMs,
  concurrency = 64,
  now = () => performance.now(),
  after = (ms, action) => {
    const timer = setTimeout(action, ms);
    return () => clearTimeout(timer);
  },
}: RunnerOptions<P>) {
  checkLimits({ maxTurns, maxContext, timeoutMs, concurrency });
  wholeNumber('maxTokens', maxTokens, 1);
  numberWithin('temperature', temperature, { min: 0, max: 2 });
  return { maxTurns, maxTokens, maxContext, temperature, timeoutMs, concurrency, now, after };
}

export type EpisodeLimits = Pick<
  RunEpisodesOptions<EpisodeProblem>,
  'maxTurns' | 'maxContext' | 'timeoutMs' | 'concurrency'
>;

/** @throws `invalid_argument` */
export function checkLimits({ maxTurns, maxContext, timeoutMs, concurrency }: EpisodeLimits): void {
  if (maxTurns !== undefined) wholeNumber('maxTurns', maxTurns, 1);
  if (maxContext !== undefined && maxContext !== Number.POSITIVE_INFINITY) wholeNumber('maxContext', maxContext, 2);
  if (timeoutMs !== undefined) timeoutWithin('timeoutMs', timeoutMs);
  if (concurrency !== undefined) wholeNumber('concurrency', concurrency, 1);
}

/** Runs work that ends when the run is aborted or its own time is over, and knows which. */
async function timed<T>(
  {
    timeoutMs,
    after,
  }: { readonly timeoutMs: number; readonly after: NonNullable<RunEpisodesOptions<EpisodeProblem>['after']> },
  run: AbortSignal,
  work: (limits: { readonly signal: AbortSignal; readonly isTimeout: () => boolean }) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  let isTimeout = false;
  const cancel = () => controller.abort(run.reason);
  if (run.aborted) cancel();
  run.addEventListener('abort', cancel, { once: true });
  const stopTimer = after(timeoutMs, () => {
    if (controller.signal.aborted) return;
    isTimeout = true;
    controller.abort(
      new LoopwrightError({ code: 'timeout', message: `the rollout took longer than its ${timeoutMs / 1000} s` }),
    );
  });
  try {
    return await work({ signal: controller.signal, isTimeout: () => isTimeout });
  } finally {
    stopTimer();
    run.removeEventListener('abort', cancel);
  }
}

/** @throws `rollouts_failed` when a larger share than `limit` came to no reward of its own */
export function checkFailures(rollouts: readonly EpisodeRollout[], limit: number): void {
  const failed = rollouts.filter(
    ({ reward, grade }) => reward === undefined || (grade !== undefined && isFailure(grade)),
  );
  if (failed.length <= limit * rollouts.length) return;
  const counts = new Map<string, number>();
  for (const { status, grade } of failed) {
    const why =
      grade !== undefined && isFailure(grade) ? (grade.status === 'timeout' ? 'grader_timeout' : grade.status) : status;
    counts.set(why, (counts.get(why) ?? 0) + 1);
  }
  const told = [...counts].map(([why, count]) => `${count} ${why}`).join(', ');
  const [first] = failed;
  throw new LoopwrightError({
    code: 'rollouts_failed',
    message: `rollouts: ${failed.length} of ${rollouts.length} came to no reward (${told}), more than the share of ${limit} that a run goes on with; the first failure is the cause of this error`,
    details: { failed: failed.length, of: rollouts.length, limit, ...Object.fromEntries(counts) },
    cause: first?.error ?? (first?.grade !== undefined && isFailure(first.grade) ? first.grade.error : undefined),
  });
}
