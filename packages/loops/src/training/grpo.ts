/**
 * Group relative policy optimisation (arXiv:2402.03300), as the paper's algorithm reads: sample a group of answers to each
 * problem, judge them, take each reward's distance from its group's mean as advantage, step, and sample from the new weights.
 *
 * Shapes: P groups (problems) of a step, G samples of a group.
 */
import type { OptimStepOutput } from '@loopwright/client';
import type { Tokenizer } from '@loopwright/text';
import type { Problem } from '../environments/environment.js';
import type { EpisodeProblem } from '../episodes/environment.js';
import { checkLimits } from '../episodes/run-episodes.js';
import type { GateDecision } from '../grader-gate/require-gate.js';
import type { SampledRollouts } from '../runs/run-samples.js';
import { answerTask } from './answer-task.js';
import type { Sampler } from './clients.js';
import { EngineClock } from './engine-clock.js';
import { checkCredit } from './episode-credit.js';
import { episodeTask } from './episode-task.js';
import { type Evaluation, validationMetrics } from './evaluate.js';
import { chooseFixed, type FixedSamples, type FixedSamplesOptions, isFixedStep } from './fixed-samples.js';
import { type CollectOptions, collectGroups } from './grpo-collect.js';
import { GrpoGuard } from './grpo-guard.js';
import { finite, type Metrics, trainingMetrics } from './grpo-metrics.js';
import {
  type CommonGrpoOptions,
  type EpisodeGrpoOptions,
  type GrpoOptions,
  type GrpoResult,
  type Resolved,
  resolve,
  type StepOf,
} from './grpo-options.js';
import { type GrpoState, readGrpoState } from './grpo-state.js';
import type { GrpoTask } from './grpo-task.js';
import { wholeNumber } from './options.js';
import { Passes } from './passes.js';
import { ProblemStream } from './problem-stream.js';
import { Progress } from './progress.js';
import { type Policy, RolloutPool } from './rollout-pool.js';
import { type Scope, withScope } from './scope.js';
import { checkValidation, type ValidationOptions, type ValidationStep, Validator } from './validation.js';

/**
 * Trains on rewards: of answers, or of episodes of several turns (an environment with `begin`).
 *
 * Groups whose rewards are all equal teach nothing: they are counted (`groups/dead`) and left out, also where a KL
 * coefficient is set, and others are drawn in their place where `refillRounds` allows it; a step with no other groups is
 * skipped and says so. Answers that could not be graded are left out of
 * their group's mean.
 *
 * With `maxStepsOffPolicy` above 0 sampling goes on while the trainer steps, from the newest weights there are.
 *
 * With `checkpoints` the run can be gone on with by another process, see {@link Checkpoints}. Without, after an error or an abort the training client is as it was
 * after its last completed call; save it if you want to go on. A gradient may be pending: `optimStep` would apply it, `loadState` drops it.
 *
 * @throws at once: `invalid_argument`, `grader_gate_failed`, `data_invalid` for checkpoints of another loop; later: `cancelled`, `grader_failed`, and what the client throws
 * @example
 * const { sampler } = await runGrpo({ training, environment: arithmetic(), steps: 30, onStep: view.onStep });
 */
export function runGrpo<P extends Problem>(options: GrpoOptions<P>): Promise<GrpoResult>;
export function runGrpo<P extends EpisodeProblem>(options: EpisodeGrpoOptions<P>): Promise<GrpoResult>;
export async function runGrpo<P extends Problem>(options: GrpoOptions<P> | EpisodeGrpoOptions<P>): Promise<GrpoResult> {
  const run = resolve(options);
  if (options.problems !== undefined) wholeNumber('problems.length', options.problems.length, 1);
  if (options.validation !== undefined) checkValidation(options.validation);
  if (!isOfEpisodes(options))
    return loop(options, run, (tokenizer) => answerTask({ environment: options.environment, tokenizer, run }));
  const { environment, maxTurns, maxContext, concurrency, after, credit = 'episode' } = options;
  checkLimits(options);
  checkCredit(credit);
  const limits = withoutUndefined({ maxTurns, maxContext, concurrency, after });
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

interface LoopOptions<P, G, A> extends Pick<CommonGrpoOptions, 'training' | 'tokenizer' | 'signal' | 'checkpoints'> {
  readonly problems?: readonly P[];
  readonly onStep?: (step: StepOf<G>) => void | Promise<void>;
  readonly validation?: ValidationOptions<P>;
  readonly onValidation?: (validation: ValidationStep<Evaluation<P, A>>) => void | Promise<void>;
  readonly fixedSamples?: FixedSamplesOptions<P>;
  readonly onFixedSamples?: (samples: FixedSamples<A>) => void | Promise<void>;
}

function loop<P, G extends SampledRollouts, A>(
  options: LoopOptions<P, G, A>,
  run: Resolved,
  taskOf: (tokenizer: Tokenizer) => GrpoTask<P, G, A>,
): Promise<GrpoResult> {
  const { signal, checkpoints } = options;
  const progress = new Progress<GrpoState>({ loop: 'grpo', checkpoints, read: readGrpoState, signal });
  const work = (scope: Scope) => progress.within(scope, () => steps(options, { run, taskOf, progress, scope }));
  return withScope(signal, work, { note: () => checkpoints?.note?.() });
}

interface StepsOptions<P, G, A> {
  readonly run: Resolved;
  readonly taskOf: (tokenizer: Tokenizer) => GrpoTask<P, G, A>;
  readonly progress: Progress<GrpoState>;
  readonly scope: Scope;
}

async function steps<P, G extends SampledRollouts, A>(
  {
    training,
    problems,
    tokenizer,
    validation,
    fixedSamples = {},
    onStep,
    onValidation,
    onFixedSamples,
  }: LoopOptions<P, G, A>,
  { run, taskOf, progress, scope }: StepsOptions<P, G, A>,
): Promise<GrpoResult> {
  const { seed, groupsPerStep, now, onNotice } = run;
  const from = progress.state;
  noteLoss(run);
  const nothingLeft = progress.nothingLeft(run.steps, { more: '`steps`' });
  if (nothingLeft !== undefined) onNotice({ type: 'nothing-left', message: nothingLeft });
  const task = taskOf(tokenizer ?? (await training.getTokenizer()));
  const source = problems === undefined ? { draw: task.draw } : { problems };
  const onEpoch = (epoch: number): void => {
    const all = `${problems?.length ?? 0} problems`;
    const message = `epoch ${epoch} of ${all} has ended: each was taken once, and they come again in another order`;
    onNotice({ type: 'epoch-end', message });
  };
  const stream = new ProblemStream<P>({ source, seed, groupsPerStep, onEpoch, ...(from && { from: from.stream }) });
  const allMetrics: Metrics[] = [];
  let skippedSteps = from?.skippedSteps ?? 0;
  const save = (signal: AbortSignal): Promise<Sampler> => training.saveWeightsAndGetSamplingClient({ signal });
  const [sampler] = await scope.all([save]);
  const engine = new EngineClock(now);
  let policy: Policy = { sampler, step: from?.policyStep ?? 0, updates: from?.updates ?? 0 };
  const pending = from?.pending.map((ticket) => stream.restore(ticket)) ?? [];
  const pool = new RolloutPool({ task, stream, scope, run, engine, policy, pending });
  const guard = new GrpoGuard({ training, run, problems: problems?.length, from });
  const end = (step: number): Promise<void> => {
    const { step: policyStep, updates } = policy;
    const state = (): GrpoState => {
      return { stream: stream.state, pending: pool.pending, updates, policyStep, skippedSteps, ...guard.state };
    };
    return progress.end(scope, state, { isLast: step === run.steps });
  };

  const validator =
    validation &&
    new Validator({
      ...{ ...validation, totalSteps: run.steps, now, onValidation },
      measure: async () => {
        const work = (signal: AbortSignal) => task.evaluate({ ...validation, sampler: policy.sampler, signal });
        const [evaluation] = await scope.all([work]);
        return { metrics: validationMetrics(evaluation), evaluation };
      },
    });

  const fallback = validation?.problems ?? problems;
  const fixed = onFixedSamples && chooseFixed(fixedSamples, { seed, fallback, draw: task.draw });
  const look = async (step: number): Promise<void> => {
    await validator?.after(step);
    if (fixed === undefined || !isFixedStep(step, run.steps)) return;
    const work = (signal: AbortSignal) => task.evaluate({ problems: fixed, sampler: policy.sampler, signal });
    const [{ answers }] = await scope.all([work]);
    await onFixedSamples?.({ type: 'fixed-samples', step, totalSteps: run.steps, answers });
  };

  await look(progress.step);
  const first = progress.step + 1;
  for (let step = first; step <= run.steps; step++) {
    scope.check();
    engine.restart();
    const passes = new Passes({
      run,
      training,
      scope,
      engine,
      start: progress.start,
      onError: (error) => pool.fail(error),
    });
    const { updates } = policy;
    const onPart: CollectOptions<P, G>['onPart'] = (part, reference) => passes.send(task.data(part, reference));
    const {
      groups,
      rest,
      reference,
      metrics: collected,
    } = await guard.watch(step, collectGroups({ ...{ run, task, pool, step, updates, onPart } }));
    const last = task.data(rest, reference);
    const before = { ...task.metrics(groups, reference), ...collected };
    const isFirst = step === first;
    const facts = {
      step,
      totalSteps: run.steps,
      groups,
      warnings: [...(isFirst ? gateWarnings(run.gate) : []), ...task.warnings(groups)],
      ...(isFirst && run.gate !== undefined ? { graderGate: run.gate } : {}),
    };
    if (passes.data.length + last.data.length === 0) {
      skippedSteps += 1;
      const metrics = { ...before, 'tokens/trained': 0, 'time/train_ms': 0, 'time/refresh_ms': 0, ...stepTime(engine) };
      allMetrics.push(metrics);
      const cutOff = run.overlong === 'mask' ? ' or only answers that were cut off' : '';
      const reason = `every group had equal rewards${cutOff}, so there was nothing to learn from`;
      const alarms = guard.lookAt({ step, groups, policy, metrics, ...validator?.newest });
      await onStep?.({ type: 'step-skipped', reason, ...facts, alarms, metrics });
      await guard.act(alarms);
      await end(step);
      await look(step);
      continue;
    }

    const { learningRate, weightDecay, gradClipNorm } = run;
    const start = now();
    let trained = start;
    passes.send(last);
    // Queued together; each takes effect after the one before it.
    const calls = progress.train(scope, [
      () => passes.output,
      async (signal): Promise<OptimStepOutput> => {
        const update = await engine.watch(() =>
          training.optimStep({ learningRate, weightDecay, gradClipNorm, signal }),
        );
        trained = now();
        return update;
      },
      (signal) => engine.watch(() => save(signal)),
    ]);
    const [passed, updated, refreshed] = await guard.watch(step, calls);
    const metrics = {
      ...before,
      ...trainingMetrics(passes.data, passed, updated),
      'time/train_ms': trained - start,
      'time/refresh_ms': now() - trained,
      ...stepTime(engine),
    };
    const { data, sources } = passes;
    const alarms = guard.lookAt({
      ...{ step, groups, policy, metrics, data, sources, ...validator?.newest },
      outputs: passed.outputs,
      update: updated,
    });
    policy = { sampler: refreshed, step, updates: updates + 1 };
    if (step < run.steps) pool.renew(policy);
    allMetrics.push(metrics);
    await onStep?.({ type: 'step-end', ...facts, alarms, metrics });
    await guard.act(alarms);
    await end(step);
    await look(step);
  }
  return {
    ...{ sampler: policy.sampler, metrics: allMetrics, skippedSteps, validations: validator?.done ?? [] },
    ...(run.gate === undefined ? {} : { graderGate: run.gate }),
  };
}

/** Of the whole step, and the share of it in which the engine was being asked for something: the rest waits for graders, tools and this program. */
function stepTime(engine: EngineClock): Metrics {
  const { busyMs, wallMs } = engine.read();
  return finite({ 'time/step_ms': wallMs, 'engine/busy_share': busyMs / wallMs });
}

function gateWarnings(gate: GateDecision | undefined): string[] {
  if (gate?.outcome !== 'overridden') return [];
  return [`the gate of the grader failed (${gate.findings.join(', ')}) and was overridden: ${gate.reason}`];
}

/** What a loss makes of answers from older policies. */
function noteLoss({ maxStepsOffPolicy, loss, onNotice }: Resolved): void {
  if (maxStepsOffPolicy === 0 || loss === 'cispo' || loss === 'ppo') return;
  const why =
    loss === 'dro'
      ? 'does not weigh answers by the ratio of the two policies'
      : 'weighs answers by the ratio of the two policies without a bound';
  const message = `loss ${loss} ${why}, and with maxStepsOffPolicy ${maxStepsOffPolicy} they differ; cispo corrects for that`;
  onNotice({ type: 'loss-note', message });
}
