/** The part `sampling`: answers come, each is judged, and the same seed gives the same ones. */
import type { Tokenizer } from '@loopwright/text';
import { isFailure, type Problem } from '../environments/environment.js';
import type { EpisodeRollout } from '../episodes/run-episode.js';
import { mixSeed } from '../random.js';
import type { ResolvedSettings } from '../tasks/settings.js';
import type { Task } from '../tasks/task.js';
import type { Sampler, Trainer } from '../training/clients.js';
import type { Rollout } from '../training/rollouts.js';
import { withScope } from '../training/scope.js';
import { rolloutTask, type SmokeGroup } from './smoke-rollouts.js';
import { SmokeFailure } from './smoke-words.js';

export interface SmokeSamplingOptions<P extends Problem> {
  readonly training: Trainer;
  readonly tokenizer: Tokenizer;
  readonly problems: readonly P[];
  readonly settings: ResolvedSettings;
  readonly contextLength: number;
  readonly seed: number;
  readonly onProgress: (sampled: number, of: number) => void;
  readonly signal?: AbortSignal;
}

export interface SmokeSampling<P extends Problem> {
  readonly groups: readonly SmokeGroup<P>[];
  readonly seen: string;
}

/** Answers to each problem. */
const groupSize = 2;
/** Problems that are sampled a second time by the same seeds. */
const repeated = 4;

export async function smokeSampling<P extends Problem>(
  task: Task<P>,
  { problems, seed, onProgress, signal, ...options }: SmokeSamplingOptions<P>,
): Promise<SmokeSampling<P>> {
  const { group } = rolloutTask(task, { ...options, groupSize });
  const sampler = await options.training.saveWeightsAndGetSamplingClient();
  const sample = (some: readonly P[], from: Sampler): Promise<SmokeGroup<P>[]> =>
    withScope(signal, (scope) =>
      Promise.all(
        some.map(async (problem, i) => {
          const seeds = { answers: mixSeed(seed, i), episode: (member: number) => mixSeed(seed, i, member) };
          const timed = <T>(_phase: unknown, work: () => T): T => work();
          const made = await group(problem, { sampler: from, scope, seeds, timed, reference: undefined });
          onProgress(++sampled, problems.length);
          return made;
        }),
      ),
    );
  let sampled = 0;
  const groups = await sample(problems, sampler);
  const rollouts = groups.flatMap((each): readonly (Rollout | EpisodeRollout<P>)[] => each.rollouts);
  const failure = rollouts.map(failureOf).find((each) => each !== undefined);
  if (failure !== undefined) {
    const failed = rollouts.filter((rollout) => failureOf(rollout) !== undefined).length;
    throw new SmokeFailure(
      `${failed} of ${rollouts.length} ${wordOf(rollouts)} came to no reward (${failure.why})`,
      failure.remedy,
      failure.error,
    );
  }
  sampled = 0;
  const again = await sample(problems.slice(0, repeated), sampler);
  if (JSON.stringify(again.map(traceOf)) !== JSON.stringify(groups.slice(0, repeated).map(traceOf)))
    throw new SmokeFailure(
      `the same seed gave other ${wordOf(rollouts)} or rewards the second time`,
      'take what is random from the `random` that is passed in, and keep nothing between calls: a run could not be repeated or resumed',
    );
  const rewards = rollouts.flatMap(({ reward }) => (reward === undefined ? [] : [reward]));
  const mean = rewards.reduce((sum, reward) => sum + reward, 0) / rewards.length;
  return {
    groups,
    seen: `${rollouts.length} ${wordOf(rollouts)} to ${groups.length} prompts, mean reward ${mean.toFixed(3)}`,
  };
}

function wordOf(rollouts: readonly object[]): string {
  return rollouts.some((rollout) => 'turns' in rollout) ? 'episodes' : 'answers';
}

interface RolloutFailure {
  readonly why: string;
  readonly remedy: string;
  readonly error?: unknown;
}

function failureOf<P extends Problem>(rollout: Rollout | EpisodeRollout<P>): RolloutFailure | undefined {
  const { grade } = rollout;
  if (grade !== undefined && isFailure(grade))
    return { why: grade.status, remedy: 'mend the grader: loopwright grader test', error: grade.error };
  if (!('turns' in rollout) || rollout.reward !== undefined) return undefined;
  const { status, error } = rollout;
  const remedies: Readonly<Record<string, string>> = {
    turn_limit: 'say in `unfinished` what an episode is worth that is cut off, or raise maxTurns',
    context_full: 'say in `unfinished` what an episode is worth that is cut off, or keep messages short',
    timeout: 'make the environment faster',
  };
  return { why: status, remedy: remedies[status] ?? 'mend the environment: its begin or respond threw', error };
}

/** What must come again. */
function traceOf<P extends Problem>({ rollouts }: SmokeGroup<P>): unknown {
  return rollouts.map((rollout) => [
    rollout.reward,
    'turns' in rollout
      ? rollout.turns.map(({ sequence }) => Array.from(sequence.tokens))
      : Array.from(rollout.sequence.tokens),
  ]);
}
