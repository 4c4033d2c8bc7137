/** What a step takes here: some are made on problems of the task, as a run makes them, in a session that is thrown away. */
import type { Tokenizer } from '@loopwright/text';
import type { Problem } from '../environments/environment.js';
import { mixSeed } from '../random.js';
import { mean } from '../statistics/advantages.js';
import type { ResolvedSettings } from '../tasks/settings.js';
import { isAnswerEnvironment, type Task } from '../tasks/task.js';
import { answerTask } from '../training/answer-task.js';
import type { Sampler, Trainer } from '../training/clients.js';
import { EngineClock } from '../training/engine-clock.js';
import { episodeTask } from '../training/episode-task.js';
import { type Resolved, resolve } from '../training/grpo-options.js';
import type { GrpoTask } from '../training/grpo-task.js';
import { type Scope, withScope } from '../training/scope.js';
import type { MeasuredSteps } from './words.js';

export interface MeasureStepsOptions<P extends Problem> {
  readonly task: Task<P>;
  readonly settings: ResolvedSettings;
  /** Of a session of its own: its weights are changed by next to nothing. */
  readonly training: Trainer;
  readonly tokenizer: Tokenizer;
  /** One for each group. */
  readonly problems: readonly P[];
  readonly seed: number;
  readonly signal: AbortSignal | undefined;
  readonly now: () => number;
}

/** Steps that are measured; the first two runs of a shape are slow, so one goes before them. */
const measured = 3;

/** Moves weights by next to nothing, so that every step samples as the base does. */
const learningRate = 1e-12;

/** Every group is trained on, whatever its rewards are: how many will be is another question. @throws `cancelled`; what the client throws */
export function measureSteps<P extends Problem>(options: MeasureStepsOptions<P>): Promise<MeasuredSteps> {
  const { task, settings, training, tokenizer, problems, signal, now } = options;
  const { environment } = task;
  const { groupSize, maxTokens, temperature, maxTurns } = settings;
  const groupsPerStep = problems.length;
  const common = { training, tokenizer, steps: 1, samplesPerGroup: groupSize, groupsPerStep, maxTokens, temperature };
  const judging = { learningRate, maxGraderErrorShare: 1, now, guard: false } as const;
  const run = resolve({ ...common, ...judging });
  return withScope(signal, (scope) =>
    isAnswerEnvironment(environment)
      ? measure(answerTask({ environment, tokenizer, run }), { ...options, run, scope })
      : measure(episodeTask({ environment, tokenizer, run, credit: 'episode', maxTurns }), { ...options, run, scope }),
  );
}

interface Rewarded {
  readonly rollouts: readonly { readonly reward?: number }[];
}

interface Work<P extends Problem> extends MeasureStepsOptions<P> {
  readonly run: Resolved;
  readonly scope: Scope;
}

interface OneStep {
  readonly collectMs: number;
  readonly graderMs: number;
  readonly passMs: number;
  readonly updateMs: number;
  readonly sampledTokens: number;
  readonly trainingTokens: number;
}

async function measure<P extends Problem, G extends Rewarded>(
  grpo: GrpoTask<P, G>,
  { training, problems, settings, seed, scope, run, now }: Work<P>,
): Promise<MeasuredSteps> {
  const save = (signal: AbortSignal): Promise<Sampler> => training.saveWeightsAndGetSamplingClient({ signal });
  let [sampler] = await scope.all([save]);
  const steps: OneStep[] = [];
  for (let step = 0; step <= measured; step++) {
    const engine = new EngineClock(now);
    const watched = engine.sampler(sampler);
    const start = now();
    const groups = await Promise.all(
      problems.map((problem, group) => {
        const of = mixSeed(seed, step, group);
        const seeds = { answers: of, episode: (member: number) => mixSeed(of, member) };
        return grpo.group(problem, {
          sampler: watched,
          scope,
          seeds,
          timed: (_phase, work) => work(),
          reference: undefined,
        });
      }),
    );
    const collected = now();
    const { busyMs, wallMs } = engine.read();
    const { data } = grpo.data(groups.map(withTwoRewards), undefined);
    const sampledTokens = grpo.metrics(groups, undefined)['tokens/sampled'] ?? 0;
    if (data.length === 0) continue; // nothing was sampled, or every episode failed
    let passed = collected;
    const [pass, , refreshed] = await scope.all([
      async (signal: AbortSignal) => {
        const output = await training.forwardBackward(data, run.loss, {}, { signal });
        passed = now();
        return output;
      },
      (signal: AbortSignal) => training.optimStep({ learningRate, signal }),
      save,
    ]);
    sampler = refreshed;
    steps.push({
      ...{
        collectMs: collected - start,
        graderMs: wallMs - busyMs,
        passMs: passed - collected,
        updateMs: now() - passed,
      },
      ...{ sampledTokens, trainingTokens: pass.trainingTokens },
    });
  }
  const warm = steps.slice(1);
  const of = (name: keyof OneStep): number => mean(warm.map((each) => each[name]));
  const whole = warm.map(({ collectMs, passMs, updateMs }) => collectMs + passMs + updateMs);
  return {
    ...{ n: warm.length, groups: problems.length, groupSize: settings.groupSize, rank: settings.rank },
    ...{ sampledTokens: of('sampledTokens'), trainingTokens: of('trainingTokens') },
    ...{ collectMs: of('collectMs'), graderMs: of('graderMs'), passMs: of('passMs'), updateMs: of('updateMs') },
    ...{ minMs: Math.min(...whole), maxMs: Math.max(...whole) },
  };
}

/** With rewards that differ, so that the group is trained on. */
function withTwoRewards<G extends Rewarded>(group: G): G {
  return { ...group, rollouts: group.rollouts.map((rollout, i) => ({ ...rollout, reward: i % 2 })) };
}
