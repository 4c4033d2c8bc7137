/** How many problems of several turns a model solves. */
import { isFailure } from '../environments/environment.js';
import type { EpisodeProblem } from '../episodes/environment.js';
import type { EpisodeRollout } from '../episodes/run-episode.js';
import { checkFailures, type RunEpisodesOptions, runEpisodes } from '../episodes/run-episodes.js';
import type { Sampler } from './clients.js';
import { type Evaluation, evaluationOf } from './evaluate.js';
import { finiteNumber, numberWithin } from './options.js';

export interface EvaluateEpisodesOptions<P extends EpisodeProblem>
  extends Pick<
    RunEpisodesOptions<P>,
    | 'environment'
    | 'tokenizer'
    | 'problems'
    | 'maxTurns'
    | 'maxTokens'
    | 'maxContext'
    | 'timeoutMs'
    | 'concurrency'
    | 'seed'
    | 'signal'
    | 'now'
    | 'after'
  > {
  /** Default 0: greedy. What trains as it samples may be judged at 1. */
  readonly temperature?: number;
  /** Episodes that are worth at least this count as correct; default 1. */
  readonly correctReward?: number;
  /** Share of episodes that may come to no judgement; default 0.2. */
  readonly maxGraderErrorShare?: number;
}

/** `answers` are the episodes. */
export type EpisodeEvaluation<P extends EpisodeProblem> = Evaluation<P, EpisodeRollout<P>>;

/**
 * One episode of each problem, greedy unless `temperature` is given. Those that were cut off by a limit of turns or tokens count as what they are worth, or as wrong; those that ended
 * by an error, by time, or without a grade are `graderErrors` and not among `n`.
 *
 * @throws `invalid_argument` without problems; `cancelled`, `rollouts_failed`
 */
export async function evaluateEpisodes<P extends EpisodeProblem>(
  sampler: Sampler,
  { temperature = 0, correctReward = 1, maxGraderErrorShare = 0.2, ...options }: EvaluateEpisodesOptions<P>,
): Promise<EpisodeEvaluation<P>> {
  finiteNumber('correctReward', correctReward);
  numberWithin('maxGraderErrorShare', maxGraderErrorShare, { min: 0, max: 1 });
  const groups = await runEpisodes({ ...options, sampler, groupSize: 1, temperature, maxFailureShare: 1 });
  const episodes = groups.flatMap(({ rollouts }) => rollouts);
  // What was cut off is the model's own failure, so it doesn't stop the run as a broken grader does.
  checkFailures(
    episodes.map((episode) => (isUnjudged(episode) ? episode : { ...episode, reward: episode.reward ?? 0 })),
    maxGraderErrorShare,
  );
  return evaluationOf(episodes, { correctReward, isUnjudged });
}

/** Says nothing of the model: it ended by an error, by time, or without a grade. */
export function isUnjudged({ status, grade, reward }: EpisodeRollout): boolean {
  if (grade !== undefined && isFailure(grade)) return true;
  return reward === undefined && status !== 'turn_limit' && status !== 'context_full';
}
