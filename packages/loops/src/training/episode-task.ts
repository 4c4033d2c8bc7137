/** GRPO's task where a problem is an episode of several turns. */
import type { Tokenizer } from '@loopwright/text';
import { isFailure } from '../environments/environment.js';
import type { EpisodeEnvironment, EpisodeProblem } from '../episodes/environment.js';
import type { EpisodeRollout } from '../episodes/run-episode.js';
import { checkFailures, type EpisodeGroup, runEpisodes } from '../episodes/run-episodes.js';
import { overlongPenalty } from '../statistics/lengths.js';
import { episodeData, scoreEpisodes, teachesEpisodes } from './episode-data.js';
import { episodeMetrics, episodeWarnings } from './episode-metrics.js';
import type { EpisodeGrpoOptions, Resolved } from './grpo-options.js';
import type { GrpoTask } from './grpo-task.js';

export interface EpisodeTaskOptions<P extends EpisodeProblem>
  extends Pick<EpisodeGrpoOptions<P>, 'maxTurns' | 'maxContext' | 'timeoutMs' | 'concurrency' | 'after'> {
  readonly environment: EpisodeEnvironment<P>;
  readonly tokenizer: Tokenizer;
  readonly run: Resolved;
}

export function episodeTask<P extends EpisodeProblem>({
  environment,
  tokenizer,
  run,
  ...limits
}: EpisodeTaskOptions<P>): GrpoTask<P, EpisodeGroup<P>> {
  const { samplesPerGroup: groupSize, maxTokens, temperature, now } = run;
  return {
    draw: (random) => environment.draw(random),
    async round(problems, { sampler, scope, seedOf, earlier, lap, reference }) {
      const sampling = { sampler, tokenizer, environment, problems, groupSize, maxTokens, temperature, now };
      const [groups] = await scope.all([
        // Failures are counted over the whole step, below.
        (signal) => runEpisodes({ ...limits, ...sampling, seed: seedOf(0), maxFailureShare: 1, signal }),
      ]);
      lap('time/sample_ms');
      checkFailures(
        [...earlier, ...groups].flatMap(({ rollouts }) => rollouts),
        run.maxGraderErrorShare,
      );
      if (reference !== undefined) {
        await scoreEpisodes(groups, { ...reference, scope });
        lap('time/reference_ms');
      }
      return groups.map((group) => ({ ...group, rollouts: group.rollouts.map((rollout) => worth(rollout, run)) }));
    },
    teaches: (group) => teachesEpisodes(group, run),
    data: (groups, reference) => episodeData(groups, { ...run, reference }),
    metrics: episodeMetrics,
    warnings: episodeWarnings,
  };
}

/** With the floor where grading failed, and lowered for its longest answer, where that is asked for. */
function worth<P extends EpisodeProblem>(
  rollout: EpisodeRollout<P>,
  { onGraderError, overlong, maxTokens }: Resolved,
): EpisodeRollout<P> {
  const { grade, reward, turns } = rollout;
  if (grade !== undefined && isFailure(grade))
    return onGraderError === 'exclude' ? rollout : { ...rollout, reward: onGraderError.floor };
  if (reward === undefined || typeof overlong !== 'object') return rollout;
  const longest = Math.max(0, ...turns.map(({ sequence }) => sequence.tokens.length));
  return { ...rollout, reward: reward + overlongPenalty(longest, { maxTokens, buffer: overlong.penalizeLast }) };
}
