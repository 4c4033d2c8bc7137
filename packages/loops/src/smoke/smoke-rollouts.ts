/** A task as the GRPO loop has it, be it of one answer or of several turns. */
import type { Tokenizer } from '@loopwright/text';
import type { Problem } from '../environments/environment.js';
import type { EpisodeRollout } from '../episodes/run-episode.js';
import type { ResolvedSettings } from '../tasks/settings.js';
import { isAnswerEnvironment, type Task } from '../tasks/task.js';
import { answerTask } from '../training/answer-task.js';
import type { Trainer } from '../training/clients.js';
import { episodeTask } from '../training/episode-task.js';
import { type CommonGrpoOptions, resolve } from '../training/grpo-options.js';
import type { GrpoTask } from '../training/grpo-task.js';
import type { Rollout } from '../training/rollouts.js';

/** The answers, or episodes, of a problem. */
export interface SmokeGroup<P extends Problem> {
  readonly problem: P;
  readonly prompt?: readonly number[];
  readonly rollouts: readonly (Rollout | EpisodeRollout<P>)[];
}

export interface RolloutTaskOptions {
  readonly training: Trainer;
  readonly tokenizer: Tokenizer;
  readonly settings: Pick<ResolvedSettings, 'maxTokens' | 'maxTurns'>;
  /** Tokens of a chat at most. */
  readonly contextLength: number;
  /** Answers, or episodes, to each problem. */
  readonly groupSize: number;
}

/** Only its `group` is used: what it is given never stops for failures. */
export function rolloutTask<P extends Problem>(
  { environment }: Task<P>,
  { training, tokenizer, settings, contextLength, groupSize }: RolloutTaskOptions,
): Pick<GrpoTask<P, SmokeGroup<P>>, 'group'> {
  const { maxTokens, maxTurns } = settings;
  const options: CommonGrpoOptions = { training, steps: 1, samplesPerGroup: groupSize, maxTokens, guard: false };
  const run = resolve(options);
  return isAnswerEnvironment(environment)
    ? answerTask({ environment, tokenizer, run })
    : episodeTask({ environment, tokenizer, run, maxTurns, maxContext: contextLength, credit: 'episode' });
}
