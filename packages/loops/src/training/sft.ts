/** Supervised fine-tuning: shuffled batches of examples, cross entropy, one optimizer step each. */
import { complaint, type DatumFor } from '@loopwright/protocol';
import type { Alarm } from '../guard/alarm.js';
import { datumKey } from '../guard/datum-key.js';
import type { GuardOptions } from '../guard/guard.js';
import { ratioInterval } from '../statistics/intervals.js';
import type { CheckpointOptions } from './checkpoints.js';
import type { Sampler, Trainer } from './clients.js';
import { isFixedStep } from './fixed-samples.js';
import { finite, type Metrics } from './grpo-metrics.js';
import type { LoopNotice } from './grpo-options.js';
import { LoopGuard } from './loop-guard.js';
import { learningRateWithin, wholeNumber } from './options.js';
import { Progress } from './progress.js';
import { type Scope, withScope } from './scope.js';
import { sftBatches } from './sft-batches.js';
import { readSftState, type SftState } from './sft-state.js';
import {
  checkSchedule,
  type Validation,
  type ValidationSchedule,
  type ValidationStep,
  Validator,
} from './validation.js';

type SftDatum = DatumFor<'cross_entropy'>;

export interface SftOptions extends CheckpointOptions {
  readonly training: Trainer;
  readonly data: readonly SftDatum[];
  /** Examples that are never trained on; their loss is taken before and after, and between as `validation` says. */
  readonly heldOut?: readonly SftDatum[];
  /** When the loss of `heldOut` is taken besides before and after; default never. */
  readonly validation?: Pick<ValidationSchedule, 'everySteps'>;
  /** Passes over the data; default 1. */
  readonly epochs?: number;
  /** Ends after so many steps in all, wherever in the data that is; default: all that the epochs make. */
  readonly maxSteps?: number;
  /** Examples of a step; default 8. */
  readonly batchSize?: number;
  /** Default 1e-4. */
  readonly learningRate?: number;
  /** Global norm; default 0, off: the loss is a sum, so its gradient grows with the batch. */
  readonly gradClipNorm?: number;
  /** Order of the examples; default 0. */
  readonly seed?: number;
  readonly signal?: AbortSignal;
  /** Called after each step, and awaited. */
  readonly onStep?: (step: SftStep) => void | Promise<void>;
  /**
   * Called after each measurement of `heldOut`, and awaited: `validation/loss` (mean per weighted target token, in nats), its 95 % interval over examples
   * (`validation/loss_low`, `validation/loss_high`; not of one example), `validation/n` (examples), `validation/tokens`, `time/validation_ms`.
   */
  readonly onValidation?: (validation: ValidationStep) => void | Promise<void>;
  /**
   * Where given, called before the first step, in the middle and after the last with a sampler of the weights, and awaited: for answers to the same few
   * prompts that people look at.
   */
  readonly onSampler?: (point: SftSampler) => void | Promise<void>;
  /** Alarms of the run; false is none. What they say goes to `onNotice` unless `guard.onAlarm` takes it. */
  readonly guard?: GuardOptions | false;
  /** Told at once of the end of an epoch that isn't the last, and of a run with nothing left; default: `console.warn` with the message. */
  readonly onNotice?: (notice: LoopNotice) => void;
  /** Milliseconds, for the `time/` metrics; default the performance clock. */
  readonly now?: () => number;
}

export interface SftStep {
  readonly type: 'step-end';
  /** From 1. */
  readonly step: number;
  readonly totalSteps: number;
  /** `loss/mean` (per weighted target token), `tokens/trained`, `tokens/target`, `time/train_ms`, and what the engine reports. */
  readonly metrics: Metrics;
  /** Raised at this step. */
  readonly alarms: readonly Alarm[];
}

/** A point of a run at which it may be looked at. */
export interface SftSampler {
  readonly sampler: Sampler;
  /** After which it samples; 0 is before the first. */
  readonly step: number;
  readonly totalSteps: number;
}

export interface SftResult {
  /** Of each step of this call, in order; a run folder has those of earlier processes too. */
  readonly metrics: readonly Metrics[];
  /** Mean loss per weighted target token, in nats; undefined without held-out examples. */
  readonly heldOutLoss?: { readonly before: number; readonly after: number };
  /** Of `heldOut`, in order; empty without it. */
  readonly validations: readonly Validation[];
}

/**
 * Trains on examples.
 *
 * @throws at once: `invalid_argument`, `data_invalid` for checkpoints of another loop; later: `cancelled`, and what the client throws
 * @example
 * const { heldOutLoss } = await runSft({ training, data, heldOut, epochs: 2, learningRate: 2e-4 });
 */
export async function runSft({
  training,
  data,
  heldOut = [],
  validation = { everySteps: Number.MAX_SAFE_INTEGER },
  epochs = 1,
  maxSteps = Number.MAX_SAFE_INTEGER,
  batchSize = 8,
  learningRate = 1e-4,
  gradClipNorm = 0,
  seed = 0,
  signal,
  checkpoints,
  onStep,
  onValidation,
  onSampler,
  guard: guardOptions = {},
  onNotice = ({ message }) => console.warn(message),
  now = () => performance.now(),
}: SftOptions): Promise<SftResult> {
  wholeNumber('data.length', data.length, 1);
  wholeNumber('epochs', epochs, 1);
  wholeNumber('maxSteps', maxSteps, 1);
  wholeNumber('batchSize', batchSize, 1);
  learningRateWithin(learningRate);
  checkSchedule('validation', validation);
  for (const [name, datums] of Object.entries({ data, heldOut })) checkTargets(name, datums);
  const progress = new Progress<SftState>({ loop: 'sft', checkpoints, read: readSftState, signal });
  const from = progress.state ?? { epoch: 0, offset: 0 };
  if (from.offset >= data.length)
    throw complaint({
      field: 'options.data',
      expected: `more than the ${from.offset} examples that were taken of this epoch`,
      got: String(data.length),
      remedy: 'go on with the examples that the run began with',
    });
  const batches = sftBatches(data, { epochs, batchSize, seed, from }).slice(0, Math.max(0, maxSteps - progress.step));
  const totalSteps = progress.step + batches.length;

  const work = async (scope: Scope): Promise<SftResult> => {
    const nothingLeft = progress.nothingLeft(totalSteps, { more: '`epochs` or `maxSteps`' });
    if (nothingLeft !== undefined) onNotice({ type: 'nothing-left', message: nothingLeft });
    const validator = new Validator({
      ...{ ...validation, atStart: true, totalSteps, now, onValidation },
      measure: async () => ({ metrics: await lossMetrics(training, heldOut, scope), evaluation: undefined }),
    });
    const validate = async (step: number): Promise<number | undefined> => {
      if (heldOut.length === 0) return undefined;
      await validator.after(step);
      return validator.done.at(-1)?.metrics['validation/loss'];
    };
    const look = async (step: number): Promise<void> => {
      if (onSampler === undefined || !isFixedStep(step, totalSteps)) return;
      const [sampler] = await scope.all([(stop) => training.saveWeightsAndGetSamplingClient({ signal: stop })]);
      await onSampler({ sampler, step, totalSteps });
    };
    let after = await validate(progress.step);
    await look(progress.step);
    const before = progress.state === undefined ? after : progress.state.before;
    const metrics: Metrics[] = [];
    const guard = new LoopGuard({ guard: guardOptions, training, onNotice, state: progress.state?.guard });
    // Of an epoch that began in a process whose guard left nothing this one can't know which examples were taken.
    const isUnknown = progress.state !== undefined && progress.state.guard === undefined;
    const wholeEpochsFrom = isUnknown && from.offset > 0 ? from.epoch + 1 : from.epoch;
    for (const { examples, epoch, next } of batches) {
      scope.check();
      const start = now();
      const calls = progress.train(scope, [
        (stop) => training.forwardBackward(examples, 'cross_entropy', {}, { signal: stop }),
        (stop) => training.optimStep({ learningRate, weightDecay: 0, gradClipNorm, signal: stop }),
      ]);
      const [passed, updated] = await guard.watch(progress.step + 1, calls);
      const stepMetrics: Metrics = {
        ...passed.metrics,
        ...updated.metrics,
        'loss/mean': sumOfLosses(passed) / targetCount(examples),
        'tokens/trained': passed.trainingTokens,
        'tokens/target': targetCount(examples),
        'time/train_ms': now() - start,
      };
      metrics.push(stepMetrics);
      const step = progress.step + 1;
      const alarms = guard.look({
        ...{ step, metrics: stepMetrics, data: examples, update: updated, learningRate, ...validator.newest },
        ...(epoch < wholeEpochsFrom
          ? {}
          : { rows: { keys: examples.map(datumKey), epochs: examples.map(() => epoch), of: data.length } }),
      });
      await onStep?.({ type: 'step-end', step, totalSteps, metrics: stepMetrics, alarms });
      await guard.act(alarms);
      await progress.end(scope, () => ({ ...next, before: before ?? null, ...guard.state }), {
        isLast: step === totalSteps,
      });
      after = await validate(step);
      await look(step);
      if (next.epoch > epoch && next.epoch < epochs) {
        const message = `epoch ${next.epoch} of ${epochs} has ended: the ${data.length} examples come again in another order`;
        onNotice({ type: 'epoch-end', message });
      }
    }
    const losses = typeof before !== 'number' || after === undefined ? {} : { heldOutLoss: { before, after } };
    return { metrics, validations: validator.done, ...losses };
  };
  return withScope(signal, (scope) => progress.within(scope, () => work(scope)), { note: () => checkpoints?.note?.() });
}

/** Loss per weighted target token, and how sure it is. */
async function lossMetrics(training: Trainer, data: readonly SftDatum[], scope: Scope): Promise<Metrics> {
  const [output] = await scope.all([(signal) => training.forward(data, 'cross_entropy', {}, { signal })]);
  const interval = ratioInterval(
    output.outputs.map(({ loss }) => loss),
    data.map((datum) => targetCount([datum])),
  );
  return finite({
    'validation/loss': sumOfLosses(output) / targetCount(data),
    'validation/loss_low': interval.low,
    'validation/loss_high': interval.high,
    'validation/n': data.length,
    'validation/tokens': targetCount(data),
  });
}

function sumOfLosses({ outputs }: { readonly outputs: readonly { readonly loss: number }[] }): number {
  return outputs.reduce((sum, { loss }) => sum + loss, 0);
}

/** Sum of weights: the denominator of a mean loss. */
function targetCount(data: readonly SftDatum[]): number {
  return data.reduce((sum, { lossFnInputs }) => {
    const weights = Array.from<number | readonly number[]>(lossFnInputs.weights).flat();
    return sum + weights.reduce((total, weight) => total + weight, 0);
  }, 0);
}

function checkTargets(name: string, data: readonly SftDatum[]): void {
  if (data.length > 0 && !(targetCount(data) > 0)) {
    throw complaint({
      field: `options.${name}`,
      expected: 'weights that add up to more than 0',
      got: 'none above 0 in sum',
      remedy: 'give the tokens to learn a weight',
    });
  }
}
