/**
 * Group relative policy optimisation (arXiv:2402.03300), as the paper's algorithm reads: sample a group of answers to each
 * problem, judge them, take each reward's distance from its group's mean as advantage, step, and sample from the new weights.
 *
 * Shapes: P groups (problems) of a step, G samples of a group.
 */
import type { LossConfigFor, OptimStepOutput, SampledTokens } from '@loopwright/client';
import type { DatumFor, LossConfig } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import { type RlLossName, rlDatum } from '../datums/rl-datum.js';
import type { Environment, Problem } from '../environments/environment.js';
import { createRandom, mixSeed } from '../random.js';
import { centerRewards, isDead } from '../statistics/advantages.js';
import { klK1 } from '../statistics/kl.js';
import type { Sampler, Scorer, Trainer } from './clients.js';
import { type Metrics, rewardsOf, rolloutMetrics, trainingMetrics } from './grpo-metrics.js';
import { learningRateWithin, numberWithin, wholeNumber } from './options.js';
import { gradeGroups, type Rollout, type RolloutGroup, sampleGroups } from './rollouts.js';
import { type Scope, withScope } from './scope.js';

export interface GrpoOptions<P extends Problem> {
  readonly training: Trainer;
  readonly environment: Environment<P>;
  /** Default: that of the training client's base model. */
  readonly tokenizer?: Tokenizer;
  readonly steps: number;
  /** P, problems of a step; default 8. */
  readonly groupsPerStep?: number;
  /** G, answers to each; default 8. */
  readonly samplesPerGroup?: number;
  /** New tokens of an answer at most; default 64. */
  readonly maxTokens?: number;
  /**
   * Above 0, default 1. Other values make the policy that samples differ from the one that is trained: logprobs are those at
   * temperature 1, so the ratio doesn't correct it.
   */
  readonly temperature?: number;
  /** Default 1e-4. */
  readonly learningRate?: number;
  /** Decoupled weight decay; default 0: with steps this few it only pulls at the adapter. */
  readonly weightDecay?: number;
  /** Global norm; default 1. 0 is off. */
  readonly gradClipNorm?: number;
  /** Default `importance_sampling`. */
  readonly loss?: RlLossName;
  /** Settings of the loss: the clip thresholds for `ppo` and `cispo`, `beta` for `dro`. The client refuses those of another loss. */
  readonly lossConfig?: LossConfig<'ppo'> | LossConfig<'dro'>;
  /** From rewards (P,G) to advantages of the same shape; default {@link centerRewards}. */
  readonly advantages?: (rewards_PG: readonly (readonly number[])[]) => number[][];
  /** A model to stay near to, or only to measure the distance from: usually the base. */
  readonly reference?: GrpoReference;
  /** Share of answers that may fail to be graded before the run stops; default 0.2. */
  readonly maxGraderErrorShare?: number;
  /** Of problems and samples; default 0. */
  readonly seed?: number;
  readonly signal?: AbortSignal;
  /** Called after each step, and awaited. */
  readonly onStep?: (step: GrpoStep<P>) => void | Promise<void>;
  /** Milliseconds, for the `time/` metrics; default the performance clock. */
  readonly now?: () => number;
}

export interface GrpoReference {
  readonly scorer: Scorer;
  /** Each token's advantage is lowered by this times its log-ratio (k1); default 0: measured only. */
  readonly klCoefficient?: number;
  /** Measure every n steps, since scoring costs a forward pass over every sample; default 1. Ignored with a coefficient. */
  readonly everySteps?: number;
}

interface GrpoStepFacts<P extends Problem> {
  /** From 1. */
  readonly step: number;
  readonly totalSteps: number;
  readonly metrics: Metrics;
  /** What was sampled: content, for people and tests, not for logs. */
  readonly groups: readonly RolloutGroup<P>[];
}

/** One step; a skipped one changed no weights. */
export type GrpoStep<P extends Problem = Problem> =
  | ({ readonly type: 'step-end' } & GrpoStepFacts<P>)
  | ({ readonly type: 'step-skipped'; readonly reason: string } & GrpoStepFacts<P>);

export interface GrpoResult {
  /** Of the weights after the last step. */
  readonly sampler: Sampler;
  /** Of each step, in order. */
  readonly metrics: readonly Metrics[];
  readonly skippedSteps: number;
}

/**
 * Trains on rewards.
 *
 * Groups whose rewards are all equal teach nothing: they are counted (`groups/dead`) and left out, also where a KL
 * coefficient is set; a step with no other groups is skipped and says so. Answers that could not be graded are left out of
 * their group's mean.
 *
 * After an error or an abort the training client is as it was after its last completed call; save it if you want to go on.
 * A gradient may be pending: `optimStep` would apply it, `loadState` drops it.
 *
 * @throws at once: `invalid_argument`; later: `cancelled`, `grader_failed`, and what the client throws
 * @example
 * const { sampler } = await runGrpo({ training, environment: arithmetic(), steps: 30, onStep: view.onStep });
 */
export async function runGrpo<P extends Problem>(options: GrpoOptions<P>): Promise<GrpoResult> {
  const run = resolve(options);
  return withScope(options.signal, async (scope) => {
    const { training, environment } = options;
    const tokenizer = options.tokenizer ?? (await training.getTokenizer());
    const random = createRandom(run.seed);
    const allMetrics: Metrics[] = [];
    let skippedSteps = 0;
    const save = (signal: AbortSignal): Promise<Sampler> => training.saveWeightsAndGetSamplingClient({ signal });
    let [sampler] = await scope.all([save]);

    for (let step = 1; step <= run.steps; step++) {
      scope.check();
      const clock = stopwatch(run.now);

      const problems = Array.from({ length: run.groupsPerStep }, () => environment.draw(random));
      const sampled = await sampleGroups({
        ...{ sampler, environment, tokenizer, problems, scope },
        ...{ numSamples: run.samplesPerGroup, maxTokens: run.maxTokens, temperature: run.temperature },
        seedOf: (group) => mixSeed(run.seed, step, group),
      });
      const times: Record<string, number> = { 'time/sample_ms': clock() };
      const reference = isMeasured(run, step) ? await scoreGroups(sampled, run.reference.scorer, scope) : undefined;
      if (reference !== undefined) times['time/reference_ms'] = clock();

      const { maxGraderErrorShare } = run;
      const groups = await gradeGroups({ groups: sampled, environment, tokenizer, maxGraderErrorShare, scope });
      times['time/grade_ms'] = clock();

      const data = datumsOf(groups, { ...run, reference });
      const before = { ...rolloutMetrics(groups, reference), ...times };
      const facts = { step, totalSteps: run.steps, groups };
      if (data.length === 0) {
        skippedSteps += 1;
        const metrics = { ...before, 'tokens/trained': 0, 'time/train_ms': 0, 'time/refresh_ms': 0 };
        allMetrics.push(metrics);
        const reason = 'every group had equal rewards, so there was nothing to learn from';
        await options.onStep?.({ type: 'step-skipped', reason, ...facts, metrics });
        continue;
      }

      const { learningRate, weightDecay, gradClipNorm } = run;
      const lossConfig = run.lossConfig as LossConfigFor<RlLossName>; // the union of losses has no type of config; the client checks it
      let trainMs = 0;
      // Queued together; each takes effect after the one before it.
      const [passed, updated, refreshed] = await scope.all([
        (signal) => training.forwardBackward(data, run.loss, lossConfig, { signal }),
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
    return { sampler, metrics: allMetrics, skippedSteps };
  });
}

/** Options with every default filled in, checked. */
function resolve<P extends Problem>({
  steps,
  groupsPerStep = 8,
  samplesPerGroup = 8,
  maxTokens = 64,
  temperature = 1,
  learningRate = 1e-4,
  weightDecay = 0,
  gradClipNorm = 1,
  loss = 'importance_sampling',
  lossConfig = {},
  advantages = centerRewards,
  reference,
  maxGraderErrorShare = 0.2,
  seed = 0,
  now = () => performance.now(),
}: GrpoOptions<P>) {
  wholeNumber('steps', steps, 1);
  wholeNumber('groupsPerStep', groupsPerStep, 1);
  wholeNumber('samplesPerGroup', samplesPerGroup, 2);
  wholeNumber('maxTokens', maxTokens, 1);
  numberWithin('temperature', temperature, { min: 0.01, max: 2 });
  learningRateWithin(learningRate);
  numberWithin('maxGraderErrorShare', maxGraderErrorShare, { min: 0, max: 1 });
  const klCoefficient = reference?.klCoefficient ?? 0;
  const everySteps = klCoefficient === 0 ? (reference?.everySteps ?? 1) : 1;
  numberWithin('reference.klCoefficient', klCoefficient, { min: 0, max: 100 });
  wholeNumber('reference.everySteps', everySteps, 1);
  return {
    ...{ steps, groupsPerStep, samplesPerGroup, maxTokens, temperature, learningRate, weightDecay, gradClipNorm },
    ...{ loss, lossConfig, advantages, maxGraderErrorShare, seed, now, reference, klCoefficient, everySteps },
  };
}

type Resolved = ReturnType<typeof resolve>;

function isMeasured(run: Resolved, step: number): run is Resolved & { readonly reference: GrpoReference } {
  return run.reference !== undefined && (step - 1) % run.everySteps === 0;
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

/** Log-probabilities of the sampled tokens under the reference, by sample. */
async function scoreGroups(
  groups: readonly { readonly prompt: readonly number[]; readonly sequences: readonly SampledTokens[] }[],
  scorer: Scorer,
  scope: Scope,
): Promise<ReadonlyMap<SampledTokens, readonly number[]>> {
  const samples = groups.flatMap(({ prompt, sequences }) =>
    sequences.filter(({ tokens }) => tokens.length > 0).map((sequence) => ({ prompt, sequence })),
  );
  const scored = await scope.all(
    samples.map(
      ({ prompt, sequence }) =>
        (signal: AbortSignal) =>
          scorer.computeLogprobs([...prompt, ...sequence.tokens], { signal }),
    ),
  );
  return new Map(
    samples.map(({ prompt, sequence }, i) => [
      sequence,
      (scored[i] ?? []).slice(prompt.length).map((logprob) => logprob ?? Number.NaN),
    ]),
  );
}

/** Datums of the groups that teach something. */
function datumsOf<P extends Problem>(
  groups: readonly RolloutGroup<P>[],
  { advantages, klCoefficient, reference }: DatumsOptions,
): DatumFor<RlLossName>[] {
  const live = groups
    .map(({ prompt, rollouts }) => ({ prompt, rollouts: rollouts.filter(isTrainable) }))
    .filter(({ rollouts }) => rollouts.length > 0 && !isDead(rewardsOf(rollouts)));
  const advantages_PG = advantages(live.map(({ rollouts }) => rewardsOf(rollouts)));
  return live.flatMap(({ prompt, rollouts }, p) =>
    rollouts.map(({ sequence }, g) => {
      const advantage = advantages_PG[p]?.[g] ?? Number.NaN; // rlDatum refuses what `advantages` left out
      const scores = reference?.get(sequence);
      if (klCoefficient === 0 || scores === undefined) return rlDatum({ prompt, sequence, advantage });
      const penalties = klK1(sequence.logprobs, scores).map((k1) => advantage - klCoefficient * k1);
      return rlDatum({ prompt, sequence, advantage: penalties });
    }),
  );
}

interface DatumsOptions extends Pick<Resolved, 'advantages' | 'klCoefficient'> {
  readonly reference: ReadonlyMap<SampledTokens, readonly number[]> | undefined;
}

function isTrainable({ grade, sequence }: Rollout): boolean {
  return grade.status !== 'grader_error' && sequence.tokens.length > 0;
}
