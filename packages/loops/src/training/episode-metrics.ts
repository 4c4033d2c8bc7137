/** The numbers of a step's episodes, named as those of single answers are. */
import { isFailure } from '../environments/environment.js';
import type { EpisodeProblem } from '../episodes/environment.js';
import type { EpisodeRollout, EpisodeStatus } from '../episodes/run-episode.js';
import type { EpisodeGroup } from '../episodes/run-episodes.js';
import { mean } from '../statistics/advantages.js';
import { klK3 } from '../statistics/kl.js';
import { areEqual, type Credit, turnCounts } from './episode-credit.js';
import { isJudged } from './episode-data.js';
import { finite, judgedMetrics, type Metrics } from './grpo-metrics.js';
import type { ReferenceScores } from './grpo-task.js';

const statuses = [
  'turn_limit',
  'context_full',
  'timeout',
  'environment_error',
  'sampling_error',
] as const satisfies readonly EpisodeStatus[];

/**
 * As `rolloutMetrics`, with `completion/…` over the answers of all turns and `grade/excluded` over all that came to no reward; and `episode/turns_mean`, `episode/sequences_mean`,
 * `episode/retokenized_turns`, and of each status but `done` how many ended so (`episode/timeout` and so on).
 *
 * Where turns are credited, `groups/dead` counts the groups without a turn that teaches, `turns/of_groups` the turn indices of all groups, `turns/dead` those at which all returns are equal.
 */
export function episodeMetrics(
  groups: readonly EpisodeGroup<EpisodeProblem>[],
  { reference, credit }: { readonly reference: ReferenceScores | undefined; readonly credit: Credit },
): Metrics {
  const judged_PG = groups.map((group) => group.rollouts.filter(isJudged)).filter((judged) => judged.length > 0);
  const turns = turnCounts(judged_PG, credit);
  const rollouts = groups.flatMap((group) => group.rollouts);
  const answers = rollouts.flatMap(({ turns }) => turns.map(({ sequence }) => sequence));
  const count = (test: (rollout: EpisodeRollout) => boolean): number => rollouts.filter(test).length;
  return finite({
    ...judgedMetrics(groups, { answers, kl: rollouts.flatMap((rollout) => distances(rollout, reference)) }),
    ...(turns === undefined
      ? {}
      : {
          'groups/dead': judged_PG.filter((judged) => areEqual(judged, credit)).length,
          'turns/of_groups': turns.all,
          'turns/dead': turns.dead,
        }),
    'episode/turns_mean': mean(rollouts.map(({ turns }) => turns.length)),
    'episode/sequences_mean': mean(rollouts.map(({ sequences }) => sequences.length)),
    'episode/retokenized_turns': rollouts.reduce((sum, { retokenizedTurns }) => sum + retokenizedTurns, 0),
    ...Object.fromEntries(
      statuses.map((status) => [`episode/${status}`, count((rollout) => rollout.status === status)]),
    ),
  });
}

/** Of the sampled tokens. */
function distances({ sequences }: EpisodeRollout, reference: ReferenceScores | undefined): number[] {
  return sequences.flatMap((sequence) => {
    const scores = reference?.get(sequence);
    if (scores === undefined) return [];
    let at = 0;
    return sequence.flatMap(({ context, answer }) => {
      const start = at + context.length;
      at = start + answer.tokens.length;
      const unscored = start === 0 ? 1 : 0; // the first token of all
      return klK3(answer.logprobs.slice(unscored), scores.slice(start + unscored - 1, at - 1));
    });
  });
}

export function episodeWarnings(groups: readonly EpisodeGroup<EpisodeProblem>[]): readonly string[] {
  const rollouts = groups.flatMap((group) => group.rollouts);
  const counts = new Map<string, number>();
  let floored = 0;
  for (const { status, grade, reward } of rollouts) {
    const failed = grade !== undefined && isFailure(grade);
    if (reward !== undefined && !failed) continue;
    if (reward !== undefined) floored += 1;
    const why = failed ? (grade.status === 'timeout' ? 'grader_timeout' : grade.status) : status;
    counts.set(why, (counts.get(why) ?? 0) + 1);
  }
  const failed = [...counts.values()].reduce((sum, one) => sum + one, 0);
  if (failed === 0) return [];
  const told = [...counts].map(([why, one]) => `${one} ${why}`).join(', ');
  const fate = floored === 0 ? 'were left out' : `${floored} were trained with the floor reward, the others left out`;
  return [`${failed} of ${rollouts.length} episodes came to no reward (${told}) and ${fate}`];
}
