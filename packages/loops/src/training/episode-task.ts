/** GRPO's task where a problem is an episode of several turns. */
import type { Tokenizer } from '@loopwright/text';
import { isFailure } from '../environments/environment.js';
import type { EpisodeEnvironment, EpisodeProblem } from '../episodes/environment.js';
import type { EpisodeRollout } from '../episodes/run-episode.js';
import { checkFailures, type EpisodeGroup, runEpisodes } from '../episodes/run-episodes.js';
import { overlongPenalty } from '../statistics/lengths.js';
import type { Credit } from './episode-credit.js';
import { episodeData, scoreEpisodes, teachesEpisodes } from './episode-data.js';
import { episodeMetrics, episodeWarnings } from './episode-metrics.js';
import type { EpisodeGrpoOptions, Resolved } from './grpo-options.js';
import type { GrpoTask } from './grpo-task.js';

export interface EpisodeTaskOptions<P extends EpisodeProblem>
  extends Pick<EpisodeGrpoOptions<P>, 'maxTurns' | 'maxContext' | 'timeoutMs' | 'concurrency' | 'after'> {
  readonly environment: EpisodeEnvironment<P>;
  readonly tokenizer: Tokenizer;
  readonly run: Resolved;
  readonly credit: Credit;
}

export function episodeTask<P extends EpisodeProblem>({
  environment,
  tokenizer,
  run,
  credit,
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
    teaches: (group) => teachesEpisodes(group, { ...run, credit }),
    data: (groups, reference) => episodeData(groups, { ...run, reference, credit }),
    metrics: (groups, reference) => episodeMetrics(groups, { reference, credit }),
    warnings: episodeWarnings,
  };
}

/** With the floor where grading failed, and lowered for its longest answer, where that is asked for: that turn earned so much less. */
function worth<P extends EpisodeProblem>(
  rollout: EpisodeRollout<P>,
  { onGraderError, overlong, maxTokens }: Resolved,
): EpisodeRollout<P> {
  const { grade, reward, turns } = rollout;
  if (grade !== undefined && isFailure(grade))
    return onGraderError === 'exclude' ? rollout : { ...rollout, reward: onGraderError.floor };
  if (reward === undefined || typeof overlong !== 'object') return rollout;
  const lengths = turns.map(({ sequence }) => sequence.tokens.length);
  const longest = Math.max(0, ...lengths);
  const penalty = overlongPenalty(longest, { maxTokens, buffer: overlong.penalizeLast });
  if (penalty === 0) return rollout;
  const at = lengths.indexOf(longest);
  const lowered = turns.map((turn, t) => (t === at ? { ...turn, reward: turn.reward + penalty } : turn));
  return { ...rollout, reward: reward + penalty, turns: lowered };
}
