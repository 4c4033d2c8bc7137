/** What may be set for a GRPO run, what is so by default, and what the run tells. */
import { complaint, type LossConfig } from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import type { RlLossName } from '../datums/rl-datum.js';
import { rolloutTimeoutMs } from '../environments/call-times.js';
import type { Environment, Problem } from '../environments/environment.js';
import type { EpisodeEnvironment, EpisodeProblem } from '../episodes/environment.js';
import type { EpisodeGroup, RunEpisodesOptions } from '../episodes/run-episodes.js';
import { type GateDecision, type GraderGate, requireGate } from '../grader-gate/require-gate.js';
import type { Alarm } from '../guard/alarm.js';
import type { GuardOptions } from '../guard/guard.js';
import { centerRewards } from '../statistics/advantages.js';
import type { KlEstimator } from '../statistics/kl.js';
import { type LengthNormalization, lengthDivisors } from '../statistics/lengths.js';
import type { CheckpointOptions } from './checkpoints.js';
import type { Sampler, Scorer, Trainer } from './clients.js';
import type { Credit } from './episode-credit.js';
import type { Evaluation } from './evaluate.js';
import type { EpisodeEvaluation } from './evaluate-episodes.js';
import type { FixedSamples, FixedSamplesOptions } from './fixed-samples.js';
import type { Metrics } from './grpo-metrics.js';
import { finiteNumber, learningRateWithin, numberWithin, timeoutWithin, wholeNumber } from './options.js';
import type { OnGraderError, RolloutGroup } from './rollouts.js';
import type { Validation, ValidationOptions, ValidationStep } from './validation.js';

/** Options for tasks of any kind. */
export interface CommonGrpoOptions extends CheckpointOptions {
  readonly training: Trainer;
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
  /** Default `importance_sampling`; `cispo` where `maxStepsOffPolicy` is above 0: its bounded ratio corrects for older policies. */
  readonly loss?: RlLossName;
  /** Settings of the loss: the clip thresholds for `ppo` and `cispo`, `beta` for `dro`. The client refuses those of another loss. */
  readonly lossConfig?: LossConfig<'ppo'> | LossConfig<'dro'>;
  /** From rewards (P,G) to advantages of the same shape; default {@link centerRewards}. */
  readonly advantages?: (rewards_PG: readonly (readonly number[])[]) => number[][];
  /** By what the length of an answer divides its advantages; default: by nothing, a sum over tokens. */
  readonly lengthNormalization?: LengthNormalization;
  /**
   * Answers cut off at `maxTokens`: `train` on them as on others (default); `mask` them, so that they count in the mean of
   * their group but are not trained on; or lower the reward of long answers over the last tokens before `maxTokens`.
   */
  readonly overlong?: 'train' | 'mask' | { readonly penalizeLast: number };
  /**
   * Rounds of further problems that take the place of groups which teach nothing; default 0. What was sampled in vain is
   * counted: `groups/dead`, `groups/refilled`.
   */
  readonly refillRounds?: number;
  /**
   * k: sampling goes on while the trainer steps, and a group is used if its policy is at most this many optimizer steps old;
   * default 0: sample, then step. At most k + 1 steps' groups are under way or waiting.
   */
  readonly maxStepsOffPolicy?: number;
  /** What becomes of a group that is older: its problem is sampled again (`requeue`, the default), or left out (`drop`). Counted either way. */
  readonly stalePolicy?: StalePolicy;
  /** Groups that are sampled and judged at once; default: all that `maxStepsOffPolicy` allows. */
  readonly maxGroupsUnderWay?: number;
  /**
   * Groups of one `forwardBackward`, which is sent as soon as so many that teach something are there; default: all of a step in one. The
   * gradient is the sum of the parts', and so the same up to rounding. `advantages` sees the groups of one such part at a time.
   */
  readonly groupsPerPass?: number;
  /** A model to stay near to, or only to measure the distance from: usually the base. */
  readonly reference?: GrpoReference;
  /** Share of answers that may fail to be graded before the run stops; default 0.2. */
  readonly maxGraderErrorShare?: number;
  /** Milliseconds that the grading of an answer may take while no other ends, or a whole episode; default ten minutes. Then it counts among those. */
  readonly timeoutMs?: number;
  /** What becomes of those: left out (the default), or trained with a floor reward. Either way they are counted and reported. */
  readonly onGraderError?: OnGraderError;
  /**
   * What `testGrader` (or `readGate`) says of the grader. One that failed refuses the run, unless it comes with a reason: that is
   * in the first step, in its warnings, in the result, and in `run.json` of a run folder.
   */
  readonly graderGate?: GraderGate;
  /** Of problems and samples; default 0. */
  readonly seed?: number;
  readonly signal?: AbortSignal;
  /** Milliseconds, for the `time/` metrics; default the performance clock. */
  readonly now?: () => number;
  /** Alarms of the run; false is none. What they say goes to `onNotice` unless `guard.onAlarm` takes it. */
  readonly guard?: GuardOptions | false;
  /** Told at once; default: `console.warn` with the message. */
  readonly onNotice?: (notice: LoopNotice) => void;
}

interface OverProblems<P> {
  /** To be taken epoch by epoch, each in an order of its own that the seed decides; default: the environment draws. */
  readonly problems?: readonly P[];
  /** Measure on problems that are never trained on, while it trains; each measurement is awaited. */
  readonly validation?: ValidationOptions<P>;
  /** Which problems `onFixedSamples` is told of. */
  readonly fixedSamples?: FixedSamplesOptions<P>;
}

/** For problems of one answer. */
export interface GrpoOptions<P extends Problem> extends CommonGrpoOptions, OverProblems<P> {
  readonly environment: Environment<P>;
  /** Called after each step, and awaited. */
  readonly onStep?: (step: GrpoStep<P>) => void | Promise<void>;
  /** Called after each measurement, and awaited. */
  readonly onValidation?: (validation: ValidationStep<Evaluation<P>>) => void | Promise<void>;
  /** Where given, the same problems are answered before the first step, in the middle and after the last; called then, and awaited. */
  readonly onFixedSamples?: (samples: FixedSamples<Evaluation<P>['answers'][number]>) => void | Promise<void>;
}

/**
 * For episodes of several turns. `samplesPerGroup` are the episodes of a problem, `maxTokens` those of one answer; all sampled tokens of an episode have
 * the advantage of its reward, or those of a turn their own, as `credit` says. `maxGraderErrorShare` counts all episodes that came to no reward, for whatever reason; `onGraderError` is about those whose grading failed, and the others
 * are left out. `overlong: 'mask'` leaves episodes with an answer that was cut off out of training; a penalty goes by the longest answer, length normalisation by all tokens that were sampled.
 */
export interface EpisodeGrpoOptions<P extends EpisodeProblem>
  extends CommonGrpoOptions,
    OverProblems<P>,
    Pick<RunEpisodesOptions<P>, 'maxTurns' | 'maxContext' | 'concurrency' | 'after'> {
  readonly environment: EpisodeEnvironment<P>;
  /** Default `episode`. */
  readonly credit?: Credit;
  /** Called after each step, and awaited. */
  readonly onStep?: (step: EpisodeGrpoStep<P>) => void | Promise<void>;
  /** Called after each measurement, and awaited. */
  readonly onValidation?: (validation: ValidationStep<EpisodeEvaluation<P>>) => void | Promise<void>;
  /** As for problems of one answer. */
  readonly onFixedSamples?: (samples: FixedSamples<EpisodeEvaluation<P>['answers'][number]>) => void | Promise<void>;
}

/** What becomes of groups whose policy is too old. */
export type StalePolicy = 'requeue' | 'drop';

/** Where a group comes from. */
export interface GroupOrigin {
  /** Of its problem, in the order of the run's problems, from 0. */
  readonly problemIndex: number;
  /** The step that made the weights it was sampled from; 0 before the first. */
  readonly policyStep: number;
  /** Optimizer steps between those weights and the ones it is trained on. */
  readonly age: number;
}

/** Something that people should know of a run. */
export interface LoopNotice {
  readonly type: 'loss-note' | 'epoch-end' | 'nothing-left' | 'alarm';
  /** A sentence, without content. */
  readonly message: string;
}

export interface GrpoReference {
  /** A sampling client of the base model or of a saved version. */
  readonly scorer: Scorer;
  /** β: how strongly the reference holds; default 0: measured only. */
  readonly klCoefficient?: number;
  /**
   * Where the estimate goes: with `reward` each token's advantage is lowered by β times it, a constant; with `loss` it is
   * differentiated, by a pass of its own ({@link klLoss}). Default `reward`.
   */
  readonly placement?: 'reward' | 'loss';
  /** Default k1 for `reward`, k3 for `loss`. */
  readonly estimator?: KlEstimator;
  /** Measure every n steps, since scoring costs a forward pass over every sample; default 1. Ignored with a coefficient. */
  readonly everySteps?: number;
}

interface GrpoStepFacts<G> {
  /** From 1. */
  readonly step: number;
  readonly totalSteps: number;
  readonly metrics: Metrics;
  /** What went wrong without ending the run, such as answers that could not be graded; one line each, without content. */
  readonly warnings: readonly string[];
  /** Raised at this step. */
  readonly alarms: readonly Alarm[];
  /** How the gate of the grader let this call begin: at its first step, where one was asked. */
  readonly graderGate?: GateDecision;
  /** What was sampled: content, for people and tests, not for logs. */
  readonly groups: readonly (G & GroupOrigin)[];
}

/** One step; a skipped one changed no weights. */
export type StepOf<G> =
  | ({ readonly type: 'step-end' } & GrpoStepFacts<G>)
  | ({ readonly type: 'step-skipped'; readonly reason: string } & GrpoStepFacts<G>);

export type GrpoStep<P extends Problem = Problem> = StepOf<RolloutGroup<P>>;
export type EpisodeGrpoStep<P extends EpisodeProblem = EpisodeProblem> = StepOf<EpisodeGroup<P>>;

export interface GrpoResult {
  /** Of the weights after the last step. */
  readonly sampler: Sampler;
  /** Of each step of this call, in order; a run folder has those of earlier processes too. */
  readonly metrics: readonly Metrics[];
  /** Of the whole run. */
  readonly skippedSteps: number;
  /** Of `validation`, in order; empty without it. */
  readonly validations: readonly Validation[];
  /** How the gate let the run begin; absent where none was asked. */
  readonly graderGate?: GateDecision;
}

/** Options with every default filled in, checked. */
export function resolve({
  steps,
  groupsPerStep = 8,
  samplesPerGroup = 8,
  maxTokens = 64,
  temperature = 1,
  learningRate = 1e-4,
  weightDecay = 0,
  gradClipNorm = 1,
  maxStepsOffPolicy = 0,
  stalePolicy = 'requeue',
  maxGroupsUnderWay = Number.POSITIVE_INFINITY,
  groupsPerPass = Number.POSITIVE_INFINITY,
  loss = maxStepsOffPolicy > 0 ? 'cispo' : 'importance_sampling',
  lossConfig = {},
  advantages = centerRewards,
  lengthNormalization = 1,
  overlong = 'train',
  refillRounds = 0,
  reference,
  maxGraderErrorShare = 0.2,
  timeoutMs = rolloutTimeoutMs,
  onGraderError = 'exclude',
  graderGate,
  seed = 0,
  now = () => performance.now(),
  guard = {},
  onNotice = ({ message }) => console.warn(message),
  training,
}: CommonGrpoOptions) {
  wholeNumber('steps', steps, 1);
  wholeNumber('groupsPerStep', groupsPerStep, 1);
  wholeNumber('samplesPerGroup', samplesPerGroup, 2);
  wholeNumber('maxTokens', maxTokens, 1);
  numberWithin('temperature', temperature, { min: 0.01, max: 2 });
  learningRateWithin(learningRate);
  numberWithin('maxGraderErrorShare', maxGraderErrorShare, { min: 0, max: 1 });
  timeoutWithin('timeoutMs', timeoutMs);
  lengthDivisors([], lengthNormalization);
  if (typeof overlong === 'object') {
    numberWithin('overlong.penalizeLast', overlong.penalizeLast, { min: 1, max: maxTokens });
  }
  wholeNumber('refillRounds', refillRounds, 0);
  wholeNumber('maxStepsOffPolicy', maxStepsOffPolicy, 0);
  if (maxGroupsUnderWay !== Number.POSITIVE_INFINITY) wholeNumber('maxGroupsUnderWay', maxGroupsUnderWay, 1);
  if (groupsPerPass !== Number.POSITIVE_INFINITY) {
    wholeNumber('groupsPerPass', groupsPerPass, 1);
    if (lengthNormalization === 'batch') {
      const expected = 'nothing with `lengthNormalization: "batch"`, which divides by the tokens of the whole step';
      throw complaint({ field: 'options.groupsPerPass', expected, got: String(groupsPerPass) });
    }
  }
  if (stalePolicy !== 'requeue' && stalePolicy !== 'drop') {
    throw complaint({ field: 'options.stalePolicy', expected: '`requeue` or `drop`', got: String(stalePolicy) });
  }
  if (onGraderError !== 'exclude') finiteNumber('onGraderError.floor', onGraderError.floor);
  const klCoefficient = reference?.klCoefficient ?? 0;
  const everySteps = klCoefficient === 0 ? (reference?.everySteps ?? 1) : 1;
  numberWithin('reference.klCoefficient', klCoefficient, { min: 0, max: 100 });
  wholeNumber('reference.everySteps', everySteps, 1);
  const placement = reference?.placement ?? 'reward';
  const estimator = reference?.estimator ?? (placement === 'reward' ? 'k1' : 'k3');
  if (placement === 'loss' && training.forwardBackwardCustom === undefined) {
    throw complaint({
      field: 'options.reference.placement',
      expected: '`reward`, since this training client has no forwardBackwardCustom',
      got: '`loss`',
    });
  }
  const gate = graderGate === undefined ? undefined : requireGate(graderGate);
  return {
    gate,
    ...{ steps, groupsPerStep, samplesPerGroup, maxTokens, temperature, learningRate, weightDecay, gradClipNorm },
    ...{ loss, lossConfig, advantages, maxGraderErrorShare, timeoutMs, onGraderError, seed, now, reference },
    ...{ klCoefficient, everySteps, placement, estimator, lengthNormalization, overlong, refillRounds },
    ...{ maxStepsOffPolicy, stalePolicy, maxGroupsUnderWay, groupsPerPass, guard, onNotice },
  };
}

export type Resolved = ReturnType<typeof resolve>;
