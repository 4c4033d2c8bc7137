/**
 * Group relative policy optimisation (arXiv:2402.03300), as the paper's algorithm reads: sample a group of answers to each
 * problem, judge them, take each reward's distance from its group's mean as advantage, step, and sample from the new weights.
 *
 * Shapes: P groups (problems) of a step, G samples of a group.
 */
import type { LossConfigFor, OptimStepOutput } from '@loopwright/client';
import type { Tokenizer } from '@loopwright/text';
import type { RlLossName } from '../datums/rl-datum.js';
import type { Problem } from '../environments/environment.js';
import type { EpisodeProblem } from '../episodes/environment.js';
import { checkLimits } from '../episodes/run-episodes.js';
import type { GateDecision } from '../grader-gate/require-gate.js';
import { klLoss } from '../losses/kl-loss.js';
import { createRandom } from '../random.js';
import { answerTask } from './answer-task.js';
import type { Sampler } from './clients.js';
import { checkCredit } from './episode-credit.js';
import { episodeTask } from './episode-task.js';
import { collectGroups } from './grpo-collect.js';
import { type Metrics, trainingMetrics } from './grpo-metrics.js';
import {
  type CommonGrpoOptions,
  type EpisodeGrpoOptions,
  type GrpoOptions,
  type GrpoResult,
  type Resolved,
  resolve,
  type StepOf,
} from './grpo-options.js';
import type { GrpoTask } from './grpo-task.js';
import { samplingWarnings } from './sampling-warning.js';
import { withScope } from './scope.js';

/**
 * Trains on rewards: of answers, or of episodes of several turns (an environment with `begin`).
 *
 * Groups whose rewards are all equal teach nothing: they are counted (`groups/dead`) and left out, also where a KL
 * coefficient is set, and others are drawn in their place where `refillRounds` allows it; a step with no other groups is
 * skipped and says so. Answers that could not be graded are left out of
 * their group's mean.
 *
 * After an error or an abort the training client is as it was after its last completed call; save it if you want to go on.
 * A gradient may be pending: `optimStep` would apply it, `loadState` drops it.
 *
 * @throws at once: `invalid_argument`, `grader_gate_failed`; later: `cancelled`, `grader_failed`, and what the client throws
 * @example
 * const { sampler } = await runGrpo({ training, environment: arithmetic(), steps: 30, onStep: view.onStep });
 */
export function runGrpo<P extends Problem>(options: GrpoOptions<P>): Promise<GrpoResult>;
export function runGrpo<P extends EpisodeProblem>(options: EpisodeGrpoOptions<P>): Promise<GrpoResult>;
export async function runGrpo<P extends Problem>(options: GrpoOptions<P> | EpisodeGrpoOptions<P>): Promise<GrpoResult> {
  const run = resolve(options);
  if (!isOfEpisodes(options))
    return loop(options, run, (tokenizer) => answerTask({ environment: options.environment, tokenizer, run }));
  const { environment, maxTurns, maxContext, timeoutMs, concurrency, after, credit = 'episode' } = options;
  checkLimits(options);
  checkCredit(credit);
  const limits = withoutUndefined({ maxTurns, maxContext, timeoutMs, concurrency, after });
  return loop(options, run, (tokenizer) => episodeTask({ ...limits, environment, tokenizer, run, credit }));
}

function isOfEpisodes<P extends Problem>(
  options: GrpoOptions<P> | EpisodeGrpoOptions<P>,
): options is EpisodeGrpoOptions<P> {
  return 'begin' in options.environment;
}

/** The options that were given. */
type Given<T> = { readonly [K in keyof T]?: Exclude<T[K], undefined> };

function withoutUndefined<T extends object>(options: T): Given<T> {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as Given<T>; // true: of the same keys, without some
}

interface LoopOptions<G> extends Pick<CommonGrpoOptions, 'training' | 'tokenizer' | 'signal'> {
  readonly onStep?: (step: StepOf<G>) => void | Promise<void>;
}

function loop<P, G>(
  options: LoopOptions<G>,
  run: Resolved,
  taskOf: (tokenizer: Tokenizer) => GrpoTask<P, G>,
): Promise<GrpoResult> {
  return withScope(options.signal, async (scope) => {
    const { training } = options;
    const task = taskOf(options.tokenizer ?? (await training.getTokenizer()));
    const random = createRandom(run.seed);
    const allMetrics: Metrics[] = [];
    let skippedSteps = 0;
    const save = (signal: AbortSignal): Promise<Sampler> => training.saveWeightsAndGetSamplingClient({ signal });
    let [sampler] = await scope.all([save]);

    for (let step = 1; step <= run.steps; step++) {
      scope.check();
      const clock = stopwatch(run.now);

      const { groups, reference, times } = await collectGroups({ run, task, sampler, random, scope, step, clock });
      const { data, near } = task.data(groups, reference);
      const before = {
        ...task.metrics(groups, reference),
        'groups/refilled': groups.length - run.groupsPerStep,
        ...times,
      };
      const facts = {
        step,
        totalSteps: run.steps,
        groups,
        warnings: [
          ...(step === 1 ? [...gateWarnings(run.gate), ...samplingWarnings(run)] : []),
          ...task.warnings(groups),
        ],
      };
      if (data.length === 0) {
        skippedSteps += 1;
        const metrics = { ...before, 'tokens/trained': 0, 'time/train_ms': 0, 'time/refresh_ms': 0 };
        allMetrics.push(metrics);
        const cutOff = run.overlong === 'mask' ? ' or only answers that were cut off' : '';
        const reason = `every group had equal rewards${cutOff}, so there was nothing to learn from`;
        await options.onStep?.({ type: 'step-skipped', reason, ...facts, metrics });
        continue;
      }

      const { learningRate, weightDecay, gradClipNorm } = run;
      const holding = klLoss({ coefficient: run.klCoefficient, estimator: run.estimator });
      const lossConfig = run.lossConfig as LossConfigFor<RlLossName>; // the union of losses has no type of config; the client checks it
      let trainMs = 0;
      // Queued together; each takes effect after the one before it.
      const [passed, , updated, refreshed] = await scope.all([
        (signal) => training.forwardBackward(data, run.loss, lossConfig, { signal }),
        async (signal) => {
          if (near.length > 0) await training.forwardBackwardCustom?.(near, holding, { signal });
        },
        async (signal): Promise<OptimStepOutput> => {
          const update = await training.optimStep({ learningRate, weightDecay, gradClipNorm, signal });
          trainMs = clock();
          return update;
        },
        save,
      ]);
      sampler = refreshed;
      const metrics = {
        ...before,
        ...trainingMetrics(data, passed, updated),
        'time/train_ms': trainMs,
        'time/refresh_ms': clock(),
      };
      allMetrics.push(metrics);
      await options.onStep?.({ type: 'step-end', ...facts, metrics });
    }
    return { sampler, metrics: allMetrics, skippedSteps, ...(run.gate === undefined ? {} : { graderGate: run.gate }) };
  });
}

function gateWarnings(gate: GateDecision | undefined): string[] {
  if (gate?.outcome !== 'overridden') return [];
  return [`the gate of the grader failed (${gate.findings.join(', ')}) and was overridden: ${gate.reason}`];
}

/** Milliseconds since the last call. */
function stopwatch(now: () => number): () => number {
  let last = now();
  return () => {
    const before = last;
    last = now();
    return last - before;
  };
}
