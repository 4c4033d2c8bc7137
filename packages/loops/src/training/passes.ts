/** The `forwardBackward` calls of a step: one, or several that are sent as groups come; their gradients add up. */
import { type ForwardBackwardOutput, type LossConfigFor, mergePassOutputs } from '@loopwright/client';
import type { DatumFor } from '@loopwright/protocol';
import type { RlLossName } from '../datums/rl-datum.js';
import type { DatumSource } from '../guard/facts.js';
import { klLoss } from '../losses/kl-loss.js';
import type { Trainer } from './clients.js';
import type { EngineClock } from './engine-clock.js';
import type { Resolved } from './grpo-options.js';
import type { TrainingData } from './grpo-task.js';
import type { Scope, StartOptions } from './scope.js';

export interface PassesOptions {
  readonly run: Resolved;
  readonly training: Trainer;
  readonly scope: Scope;
  readonly start: StartOptions;
  readonly engine: EngineClock;
  /** Told of a failure at once: whoever waits for groups needs not wait for more. */
  readonly onError: (error: unknown) => void;
}

export class Passes {
  readonly #options: PassesOptions;
  readonly #sent: Promise<ForwardBackwardOutput>[] = [];
  readonly #near: Promise<unknown>[] = [];
  readonly #data: DatumFor<RlLossName>[] = [];
  readonly #sources: DatumSource[] = [];

  constructor(options: PassesOptions) {
    this.#options = options;
  }

  /** All that was sent, in that order. */
  get data(): readonly DatumFor<RlLossName>[] {
    return this.#data;
  }

  /** What that was made of. */
  get sources(): readonly DatumSource[] {
    return this.#sources;
  }

  /** Of all passes as if they were one; rejects when any failed. */
  get output(): Promise<ForwardBackwardOutput> {
    return Promise.all([Promise.all(this.#sent), ...this.#near]).then(([parts]) => mergePassOutputs(parts));
  }

  /** Queues a pass; nothing without data. */
  send({ data, near, sources }: TrainingData): void {
    if (data.length === 0) return;
    const { run, training, scope, start, engine, onError } = this.#options;
    const lossConfig = run.lossConfig as LossConfigFor<RlLossName>; // the union of losses has no type of config; the client checks it
    this.#data.push(...data);
    this.#sources.push(...sources);
    const pass = (signal: AbortSignal) =>
      engine.watch(() => training.forwardBackward(data, run.loss, lossConfig, { signal }));
    const { ended } = scope.start(pass, start);
    ended.catch(onError);
    this.#sent.push(ended);
    if (near.length === 0) return;
    const holding = klLoss({ coefficient: run.klCoefficient, estimator: run.estimator });
    const hold = (signal: AbortSignal) =>
      engine.watch(async () => training.forwardBackwardCustom?.(near, holding, { signal }));
    const held = scope.start(hold, start);
    held.ended.catch(onError);
    this.#near.push(held.ended);
  }
}
