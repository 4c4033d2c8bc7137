/** The pretraining loop: a batch, a gradient, a step. */
import type { Trainer } from 'loopwright';
import { type CorpusSource, corpusBatch } from './corpus.js';
import { learningRateAt } from './schedule.js';
import type { PretrainingSettings } from './settings.js';

export interface PretrainingStep {
  /** From 1. */
  readonly step: number;
  /** Mean over the answer tokens of the batch, in nats. */
  readonly loss: number;
  readonly learningRate: number;
  /** Before clipping. */
  readonly gradNorm: number;
}

export interface PretrainOptions extends CorpusSource {
  readonly training: Pick<Trainer, 'forwardBackward' | 'optimStep'>;
  readonly settings: PretrainingSettings;
  /** Steps that were taken before; default 0. */
  readonly doneSteps?: number;
  /** Stops between two steps. */
  readonly signal?: AbortSignal;
  /** Called after each step, and awaited. */
  readonly onStep?: (step: PretrainingStep) => void | Promise<void>;
}

/** Trains until the schedule ends or the signal fires. @returns steps taken, those before included */
export async function pretrain({
  training,
  settings,
  doneSteps = 0,
  signal,
  onStep,
  ...source
}: PretrainOptions): Promise<number> {
  const { schedule, optimizer, seed } = settings;
  for (let step = doneSteps + 1; step <= schedule.steps; step++) {
    if (signal?.aborted === true) return step - 1;
    const learningRate = learningRateAt(schedule, step);
    const pass = training.forwardBackward(corpusBatch(source, { ...settings.corpus, seed }, step), 'cross_entropy');
    const update = training.optimStep({ ...optimizer, learningRate });
    const [{ outputs }, { metrics }] = await Promise.all([pass, update]);
    const loss = outputs.reduce((sum, output) => sum + output.loss, 0);
    await onStep?.({ step, loss, learningRate, gradNorm: metrics['optim/grad_norm'] ?? Number.NaN });
  }
  return schedule.steps;
}
