/** TrainingClient: the training half of a session; every call returns a future and goes out in call order. */
import {
  complaint,
  type Datum,
  type DatumFor,
  LoopwrightError,
  type LossName,
  type OperationResults,
  type PassResult,
  type TrainingOperation,
} from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import {
  completeAdam,
  completeLoss,
  datumFromInputs,
  decodeTrainingResult,
  defaultLearningRate,
  encodeTrainingRequest,
  lossNameAt,
} from '@loopwright/wires/sagemaker';
import { arns, checkedArn } from './arns.js';
import { mergePasses, splitBatch } from './batches.js';
import type { Catalog } from './catalog.js';
import { FailureLog, unawaitedError } from './failure-log.js';
import type { LossConfigFor } from './losses.js';
import {
  listModelPackages,
  type ModelPackageFilter,
  type ModelPackageInfo,
  type ModelPackageKind,
} from './model-packages.js';
import { OperationFuture } from './operation-future.js';
import { OperationTask, type TaskGroup } from './operation-task.js';
import { SamplingClient, versionChoice } from './sampling-client.js';
import type { SessionLink } from './session-link.js';
import { type DeleteOptions, deleteSession, stopSession } from './sessions.js';
import type { CallOptions } from './transport.js';

/** How long weights live that were saved only to sample from: longer than any step should take. */
export const ephemeralTtlSeconds = 14_400;

export interface ForwardBackwardOutput {
  /** One per datum, in input order. `logprobs` has one value per target token (flat, N or N·K); `loss` is the datum's sum. */
  readonly outputs: readonly { readonly logprobs: number[]; readonly loss: number }[];
  /** Of the engine, plus `loss/sum` (over tokens and datums) and `loss/mean` (per datum). */
  readonly metrics: Readonly<Record<string, number>>;
  /** Tokens of all model inputs. */
  readonly trainingTokens: number;
}

export interface OptimStepOptions extends CallOptions {
  /** Above 0, at most 0.01; default 1e-4. */
  readonly learningRate?: number;
  /** Default 0.9. */
  readonly beta1?: number;
  /** Default 0.999. */
  readonly beta2?: number;
  /** Default 1e-8. */
  readonly eps?: number;
  /** Decoupled; default 0.01. */
  readonly weightDecay?: number;
  /** Global norm; default 0, off. */
  readonly gradClipNorm?: number;
  /** B matrices step at learningRate × this; default 1. */
  readonly loraPlusLrRatio?: number;
}

export interface OptimStepOutput {
  /** `optim/grad_norm` (before clipping), `optim/lr`, `optim/step` (from 1) and what the engine adds. */
  readonly metrics: Readonly<Record<string, number>>;
}

export interface SaveOptions extends CallOptions {
  /** 1024 characters at most. */
  readonly description?: string;
}

export interface SaveWeightsOptions extends SaveOptions {
  /** Save the whole model with the adapter folded in, besides; default false. */
  readonly mergeWeights?: boolean;
  /** The version expires after this long; default never. */
  readonly ttlSeconds?: number;
}

export interface SavedVersion {
  readonly modelPackageArn: string;
}

export interface TrainingClientParts {
  readonly link: SessionLink;
  readonly catalog: Catalog;
  readonly baseModel: string;
  readonly onClosed: () => void;
}

/**
 * Drives one training session. Made by a service client.
 *
 * Calls check their arguments at once and throw `invalid_argument` for wrong ones; everything else is told by the future.
 * Operations are submitted in call order, one after the other, and run in that order on the server; sampling runs beside them.
 * A call after {@link TrainingClient.stop} or `close` throws `disposed`.
 *
 * @example
 * const pass = training.forwardBackward(data, 'importance_sampling'); // queued at once
 * const update = training.optimStep({ learningRate: 1e-4 });          // queued behind it
 * await Promise.all([pass, update]);
 */
export class TrainingClient implements AsyncDisposable {
  /** Name of the session. */
  readonly name: string;
  readonly baseModel: string;
  readonly #link: SessionLink;
  readonly #catalog: Catalog;
  readonly #onClosed: () => void;
  readonly #log = new FailureLog();
  readonly #saved: { readonly kind: ModelPackageKind; readonly modelPackageArn: string }[] = [];
  #isStopped = false;
  #closing: Promise<void> | undefined;

  /** Made by a service client. */
  constructor({ link, catalog, baseModel, onClosed }: TrainingClientParts) {
    this.name = link.name;
    this.baseModel = baseModel;
    this.#link = link;
    this.#catalog = catalog;
    this.#onClosed = onClosed;
  }

  /** Sequence number of the last operation that the server accepted; numbers are given out on submission. 0 before the first. */
  get currentSequenceNumber(): number {
    return this.#link.lastNumber;
  }

  /** The tokenizer of the base model. */
  getTokenizer(options: CallOptions = {}): Promise<Tokenizer> {
    return this.#catalog.tokenizer(this.baseModel, options);
  }

  /** As {@link forwardBackward}, without a gradient. */
  forward<L extends LossName>(
    data: readonly DatumFor<NoInfer<L>>[],
    loss: L,
    config?: LossConfigFor<NoInfer<L>>,
    options?: CallOptions,
  ): OperationFuture<ForwardBackwardOutput> {
    return this.#pass('forward', { data, loss, config, options });
  }

  /**
   * Computes the loss and adds its gradient to the pending one. The loss is a sum over tokens and datums, so one call equals
   * several over its parts; batches too large for one request (1024 datums, about 10 MB) are sent in parts.
   *
   * @throws at once: `invalid_argument` naming datum, input and position
   */
  forwardBackward<L extends LossName>(
    data: readonly DatumFor<NoInfer<L>>[],
    loss: L,
    config?: LossConfigFor<NoInfer<L>>,
    options?: CallOptions,
  ): OperationFuture<ForwardBackwardOutput> {
    return this.#pass('forward-backward', { data, loss, config, options });
  }

  /**
   * One AdamW step with the pending gradient, which is then cleared.
   *
   * @throws at once: `invalid_argument`; by the future: `gradient_incomplete` when a `forwardBackward` before it failed
   */
  optimStep({
    signal,
    learningRate = defaultLearningRate,
    ...rest
  }: OptimStepOptions = {}): OperationFuture<OptimStepOutput> {
    const adam = completeAdam({ learningRate, ...rest }, 'options');
    return this.#run({ type: 'optim-step', adam }, signal, ({ metrics, step, gradNorm }) => ({
      metrics: { ...metrics, 'optim/lr': adam.learningRate, 'optim/step': step, 'optim/grad_norm': gradNorm },
    }));
  }

  /** Saves the weights as a version that can be sampled from. */
  saveWeightsForSampler({
    description = '',
    mergeWeights = false,
    ttlSeconds,
    signal,
  }: SaveWeightsOptions = {}): OperationFuture<SavedVersion> {
    checkDescription(description);
    if (ttlSeconds !== undefined && !(Number.isInteger(ttlSeconds) && ttlSeconds >= 1)) {
      throw complaint({ field: 'options.ttlSeconds', expected: 'an integer from 1', got: String(ttlSeconds) });
    }
    return this.#save(
      { type: 'save-weights', description, merge: mergeWeights, ttlSeconds: ttlSeconds ?? null },
      signal,
    );
  }

  /** Saves weights and optimizer state as a version that can be resumed. Pending gradients are not part of it. */
  saveState({ description = '', signal }: SaveOptions = {}): OperationFuture<SavedVersion> {
    checkDescription(description);
    return this.#save({ type: 'save-state', description }, signal);
  }

  /** Replaces the weights; moments and step start anew, pending gradients are dropped. */
  loadState(modelPackageArn: string, { signal }: CallOptions = {}): OperationFuture<undefined> {
    return this.#load(modelPackageArn, false, signal);
  }

  /** Replaces weights, moments and step; pending gradients are dropped. */
  loadStateWithOptimizer(modelPackageArn: string, { signal }: CallOptions = {}): OperationFuture<undefined> {
    return this.#load(modelPackageArn, true, signal);
  }

  /**
   * Saves the weights as they are after the calls so far, and binds a sampler to them. The version is made for sampling: it
   * expires after four hours unless `ttlSeconds` says otherwise.
   */
  async saveWeightsAndGetSamplingClient(options: SaveWeightsOptions = {}): Promise<SamplingClient> {
    const { modelPackageArn } = await this.saveWeightsForSampler({ ttlSeconds: ephemeralTtlSeconds, ...options });
    return this.createSamplingClient(modelPackageArn);
  }

  /** A sampler for a saved version, or for the session's latest save (the base model before the first). No request is made. */
  createSamplingClient(modelPackageArn?: string): SamplingClient {
    this.#checkOpen('createSamplingClient');
    return new SamplingClient({
      link: this.#link,
      catalog: this.#catalog,
      baseModel: this.baseModel,
      modelPackageArn: versionChoice(modelPackageArn),
      log: this.#log.child(),
    });
  }

  /** Saved versions of the server, newest first. */
  listModelPackages(filter: ModelPackageFilter = {}): Promise<ModelPackageInfo[]> {
    return listModelPackages(this.#link.transport, filter);
  }

  /** ARN of the latest version that this client has saved; undefined when it has saved none of that kind. No request is made. */
  getLatestModelPackage(kind: ModelPackageKind): string | undefined {
    return this.#saved.findLast((saved) => saved.kind === kind)?.modelPackageArn;
  }

  /** Ends the session now: what is queued here is never sent, what waits on the server is skipped, saved versions stay. */
  async stop(options: CallOptions = {}): Promise<void> {
    this.#isStopped = true;
    this.#link.dropQueued(
      new LoopwrightError({ code: 'operation_skipped', message: `session ${this.name} was stopped` }),
    );
    await stopSession(this.#link.transport, this.name, options);
  }

  /** Deletes the session; its saved versions stay. */
  async delete(options: DeleteOptions = {}): Promise<void> {
    if (options.stopIfActive === true) this.#isStopped = true;
    await deleteSession(this.#link.transport, this.name, options);
    this.#isStopped = true;
  }

  /**
   * Waits until everything that was called has ended, then stops the session. Closing twice is harmless.
   *
   * @throws failures that nobody awaited, as one error that names the operations
   */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #close(): Promise<void> {
    try {
      await this.#link.idle();
      if (!this.#isStopped) await this.#stopQuietly();
    } finally {
      this.#isStopped = true;
      this.#onClosed();
    }
    const failures = this.#log.takeAll();
    if (failures.length > 0) throw unawaitedError(failures);
  }

  /** A session that is gone already needs no stop. */
  async #stopQuietly(): Promise<void> {
    try {
      await stopSession(this.#link.transport, this.name);
    } catch (error) {
      if (!LoopwrightError.isInstance(error) || error.code !== 'unknown_session') throw error;
    }
  }

  #checkOpen(what: string): void {
    if (this.#closing !== undefined || this.#isStopped) {
      throw new LoopwrightError({
        code: 'disposed',
        message: `${what}: session ${this.name} was stopped or closed here`,
      });
    }
  }

  #pass<L extends LossName>(
    type: 'forward' | 'forward-backward',
    call: {
      readonly data: readonly DatumFor<L>[];
      readonly loss: L;
      readonly config: LossConfigFor<L> | undefined;
      readonly options: CallOptions | undefined;
    },
  ): OperationFuture<ForwardBackwardOutput> {
    const loss = completeLoss(lossNameAt(call.loss, 'loss'), call.config ?? {}, 'config', 'local');
    if (!Array.isArray(call.data) || call.data.length === 0) {
      throw complaint({
        field: 'data',
        expected: 'an array of one or more datums',
        got: Array.isArray(call.data) ? 'none' : typeof call.data,
      });
    }
    const data: Datum[] = call.data.map((datum, index) => datumFromInputs(datum, `data[${index}]`, call.loss));
    const group: TaskGroup = {};
    const tasks = splitBatch(data).map((part) => this.#task({ type, data: part, loss }, group));
    return this.#enqueue(tasks, call.options?.signal, (parts) => passOutput(mergePasses(parts)));
  }

  #save(
    operation: Extract<TrainingOperation, { type: 'save-weights' | 'save-state' }>,
    signal: AbortSignal | undefined,
  ): OperationFuture<SavedVersion> {
    const kind = operation.type === 'save-state' ? 'state' : 'weights';
    return this.#run(operation, signal, ({ version }) => {
      this.#saved.push({ kind, modelPackageArn: version });
      return { modelPackageArn: version };
    });
  }

  #load(modelPackageArn: string, loadOptimizer: boolean, signal: AbortSignal | undefined): OperationFuture<undefined> {
    const version = checkedArn(modelPackageArn, 'modelPackageArn');
    return this.#run({ type: 'load-state', version, loadOptimizer }, signal, () => undefined);
  }

  #run<T extends TrainingOperation['type'], R>(
    operation: Extract<TrainingOperation, { type: T }>,
    signal: AbortSignal | undefined,
    read: (result: OperationResults[T]) => R,
  ): OperationFuture<R> {
    const task = this.#task<T>(operation, {});
    // true: there is one task, so there is one result
    return this.#enqueue([task], signal, ([result]) => read(result as OperationResults[T]));
  }

  #task<T extends TrainingOperation['type']>(
    operation: Extract<TrainingOperation, { type: T }>,
    group: TaskGroup,
  ): OperationTask<OperationResults[T]> {
    // true: `operation` carries its own type
    const type = operation.type as T;
    return new OperationTask(
      {
        type,
        encode: (submission) => encodeTrainingRequest({ ...submission, operation }, { arns }),
        decode: (body) => decodeTrainingResult(body, type, { arns }),
      },
      group,
    );
  }

  #enqueue<P, R>(
    tasks: readonly OperationTask<P>[],
    signal: AbortSignal | undefined,
    read: (results: readonly P[]) => R,
  ): OperationFuture<R> {
    this.#checkOpen(tasks[0]?.type ?? 'call');
    const result = Promise.all(tasks.map((task) => task.ended)).then(read);
    const future = new OperationFuture({ result, parts: tasks, log: this.#log, signal });
    for (const task of tasks) this.#link.enqueueTraining(task);
    return future;
  }
}

function passOutput({ outputs, lossSum, metrics, trainingTokens }: PassResult): ForwardBackwardOutput {
  return {
    outputs: outputs.map(({ logprobs, loss }) => ({ logprobs: Array.from(logprobs), loss })),
    metrics: { ...metrics, 'loss/sum': lossSum, 'loss/mean': lossSum / Math.max(1, outputs.length) },
    trainingTokens,
  };
}

function checkDescription(description: string): void {
  if (typeof description !== 'string' || description.length > 1024) {
    throw complaint({
      field: 'options.description',
      expected: 'at most 1024 characters',
      got: String(description?.length),
    });
  }
}
