/** TrainingClient: the training half of a session; every call returns a future and goes out in call order. */
import {
  complaint,
  type Datum,
  type DatumFor,
  LoopwrightError,
  type LossName,
  type OperationResults,
  type TrainingOperation,
  type TrainingSpec,
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
import { checkBatch, mergePasses, splitBatch } from './batches.js';
import type { Catalog } from './catalog.js';
import { type CustomDatum, type CustomLoss, CustomPass, type CustomPassOutput } from './custom-loss.js';
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
import {
  ephemeralTtlSeconds,
  type ForwardBackwardOutput,
  type OptimStepOptions,
  type OptimStepOutput,
  passOutput,
  type SavedVersion,
  type SaveOptions,
  type SaveWeightsOptions,
} from './training-calls.js';
import type { CallOptions } from './transport.js';

type PassType = 'forward' | 'forward-backward';

export interface TrainingClientParts {
  readonly link: SessionLink;
  readonly catalog: Catalog;
  readonly baseModel: string;
  readonly trainingType: TrainingSpec['type'];
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
  /** What the session trains: `lora`, an adapter, or `full`, every weight. */
  readonly trainingType: TrainingSpec['type'];
  readonly #link: SessionLink;
  readonly #catalog: Catalog;
  readonly #onClosed: () => void;
  readonly #log = new FailureLog();
  readonly #saved: { readonly kind: ModelPackageKind; readonly modelPackageArn: string }[] = [];
  #isStopped = false;
  #closing: Promise<void> | undefined;

  /** Made by a service client. */
  constructor({ link, catalog, baseModel, trainingType, onClosed }: TrainingClientParts) {
    this.name = link.name;
    this.baseModel = baseModel;
    this.trainingType = trainingType;
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
   * Adds the gradient of a loss that you compute to the pending one: a `forward`, your function of its log-probabilities,
   * and a `forwardBackward` of −Σ w·lp with w = −∂loss/∂lp, which has the gradient of your loss. Nothing comes between the
   * two, what is called after them runs after them, and your function is called once. Both passes are metered.
   *
   * @param loss gives loss and gradients, or is made of autodiff by `valueAndGrad` of `@loopwright/loops`
   * @throws at once: `invalid_argument` naming datum, input and position; by the future: `loss_function_failed` when `loss`
   *   throws or gives numbers that are not finite or of another shape. Then no gradient was added, and the `optimStep`
   *   behind it fails with `gradient_incomplete`
   * @example
   * await training.forwardBackwardCustom(data, (logprobs) => ({
   *   loss: 0.5 * logprobs.flat().reduce((sum, lp) => sum + lp * lp, 0),
   *   gradients: logprobs,
   * }));
   */
  forwardBackwardCustom<D extends CustomDatum>(
    data: readonly D[],
    loss: CustomLoss<D>,
    { signal }: CallOptions = {},
  ): OperationFuture<CustomPassOutput> {
    const pass = new CustomPass(data, loss);
    const group: TaskGroup = {};
    const crossEntropy = { name: 'cross_entropy' } as const;
    const forward = splitBatch(pass.data).map((part) =>
      this.#task<PassType>('forward', {
        group,
        operation: () => ({ type: 'forward', data: part, loss: crossEntropy }),
      }),
    );
    const ready = Promise.all(forward.map((task) => task.ended)).then((parts) => pass.evaluate(mergePasses(parts)));
    ready.catch(() => undefined); // told by the tasks that wait for it
    const backward = splitBatch(pass.trained).map((part) =>
      this.#task<PassType>('forward-backward', {
        group,
        ready,
        operation: () => ({ type: 'forward-backward', data: pass.surrogate(part), loss: crossEntropy }),
      }),
    );
    return this.#enqueue([...forward, ...backward], signal, () => pass.output);
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
    type: PassType,
    call: {
      readonly data: readonly DatumFor<L>[];
      readonly loss: L;
      readonly config: LossConfigFor<L> | undefined;
      readonly options: CallOptions | undefined;
    },
  ): OperationFuture<ForwardBackwardOutput> {
    const loss = completeLoss(lossNameAt(call.loss, 'loss'), call.config ?? {}, 'config', 'local');
    checkBatch(call.data);
    const data: Datum[] = call.data.map((datum, index) => datumFromInputs(datum, `data[${index}]`, call.loss));
    const group: TaskGroup = {};
    const tasks = splitBatch(data).map((part) =>
      this.#task(type, { group, operation: () => ({ type, data: part, loss }) }),
    );
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
    // true: `operation` carries its own type
    const task = this.#task(operation.type as T, { operation: () => operation });
    // true: there is one task, so there is one result
    return this.#enqueue([task], signal, ([result]) => read(result as OperationResults[T]));
  }

  /** @param parts `ready`: a promise that `operation` can only be made after */
  #task<T extends TrainingOperation['type']>(
    type: T,
    {
      operation,
      ...parts
    }: {
      readonly operation: () => Extract<TrainingOperation, { type: T }>;
      readonly group?: TaskGroup;
      readonly ready?: Promise<unknown>;
    },
  ): OperationTask<OperationResults[T]> {
    return new OperationTask({
      type,
      encode: (submission) => encodeTrainingRequest({ ...submission, operation: operation() }, { arns }),
      decode: (body) => decodeTrainingResult(body, type, { arns }),
      ...parts,
    });
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

function checkDescription(description: string): void {
  if (typeof description !== 'string' || description.length > 1024) {
    throw complaint({
      field: 'options.description',
      expected: 'at most 1024 characters',
      got: String(description?.length),
    });
  }
}
