/** GRPO's task where a problem is an episode of several turns. */
import type { Tokenizer } from '@loopwright/text';
import { isFailure } from '../environments/environment.js';
import type { EpisodeEnvironment, EpisodeProblem } from '../episodes/environment.js';
import type { EpisodeRollout } from '../episodes/run-episode.js';
import { checkFailures, type EpisodeGroup, episodeRunner } from '../episodes/run-episodes.js';
import { overlongPenalty } from '../statistics/lengths.js';
import type { Credit } from './episode-credit.js';
import { episodeData, scoreEpisodes, teachesEpisodes } from './episode-data.js';
import { episodeMetrics, episodeWarnings } from './episode-metrics.js';
import { evaluateEpisodes } from './evaluate-episodes.js';
import type { EpisodeGrpoOptions, Resolved } from './grpo-options.js';
import type { GrpoTask } from './grpo-task.js';

export interface EpisodeTaskOptions<P extends EpisodeProblem>
  extends Pick<EpisodeGrpoOptions<P>, 'maxTurns' | 'maxContext' | 'concurrency' | 'after'> {
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
  ...given
}: EpisodeTaskOptions<P>): GrpoTask<P, EpisodeGroup<P>, EpisodeRollout<P>> {
  const { samplesPerGroup: groupSize, maxTokens, temperature, now, maxGraderErrorShare, seed, timeoutMs } = run;
  const limits = { ...given, timeoutMs };
  const runner = episodeRunner({ ...limits, tokenizer, environment, maxTokens, temperature, now });
  return {
    draw: (random) => environment.draw(random),
    async group(problem, { sampler, scope, seeds, timed, reference }) {
      const members = Array.from({ length: groupSize }, (_, member) => (signal: AbortSignal) => {
        const seed = seeds.episode(member);
        return runner({ sampler, problem, seed, signal });
      });
      const rollouts = await timed('sample', () => scope.all(members));
      if (reference !== undefined)
        await timed('reference', () => scoreEpisodes([{ problem, rollouts }], { ...reference, scope }));
      return { problem, rollouts: rollouts.map((rollout) => worth(rollout, run)) };
    },
    check: (groups) =>
      checkFailures(
        groups.flatMap(({ rollouts }) => rollouts),
        maxGraderErrorShare,
      ),
    teaches: (group) => teachesEpisodes(group, { ...run, credit }),
    data: (groups, reference) => episodeData(groups, { ...run, reference, credit }),
    metrics: (groups, reference) => episodeMetrics(groups, { reference, credit }),
    evaluate: ({ sampler, ...work }) =>
      evaluateEpisodes(sampler, {
        ...limits,
        environment,
        tokenizer,
        maxTokens,
        maxGraderErrorShare,
        seed,
        now,
        ...work,
      }),
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
