/** One session's trained arrays, pending gradient and optimizer state, and the passes and steps over them. */
import {
  type AdamParams,
  complaint,
  type Datum,
  type DatumOutput,
  LoopwrightError,
  type OptimStepResult,
  type PassOperation,
  type PassResult,
  type SessionSpec,
} from '@loopwright/protocol';
import type { ExecutionPlan } from '../../engine.js';
import { blockArrays } from '../../formats/blocks.js';
import type { BaseModel, TrainingProgram } from '../base-model.js';
import { checkPassMemory } from '../memory-limit.js';
import { attentionTokens } from '../models/cost.js';
import { keepsAll } from '../models/sequence-form.js';
import { type Feeds, floats } from '../ort/runtime.js';
import type { Slices } from '../slices.js';
import { adamUpdate, clipFactor, globalNorm, type Moments } from './adamw.js';
import { checkData } from './check-data.js';
import { lossScalars } from './loss.js';
import { RatioStatistics } from './metrics.js';
import { fillBatch, type MicroBatch, planMicroBatches } from './micro-batch.js';
import { branchStarts } from './packed-row.js';
import { initialParameters, type Parameter, parametersFrom, trainedBy } from './parameters.js';
import type { SessionState } from './session-state.js';
import { embeddedRows, gradientOf } from './training-graph.js';

const embeddingName = 'model.embed_tokens.weight';
/** Array elements that one slice of an optimizer step updates: some tens of milliseconds. */
const elementsPerSlice = 4_000_000;

export class TrainingSession {
  /** What it was made from. */
  readonly created: SessionSpec;
  readonly plan: ExecutionPlan;
  readonly #base: BaseModel;
  #spec: SessionSpec;
  #parameters: ReadonlyMap<string, Parameter>;
  #feeds: Feeds;
  #moments = new Map<string, Moments>();
  #gradient: Map<string, Float32Array> | undefined;
  #pendingPasses = 0;
  #step = 0;
  #hasTrained = false;
  /** Of those who read the arrays while other calls go on. */
  readonly #reads = new Set<Promise<unknown>>();

  /** @param state of an earlier incarnation, whose arrays it takes over; absent for a new session */
  constructor(base: BaseModel, spec: SessionSpec, { plan, state }: { plan: ExecutionPlan; state?: SessionState }) {
    this.created = spec;
    this.plan = plan;
    this.#base = base;
    this.#spec = spec;
    this.#parameters = state === undefined ? initialParameters(base, spec) : new Map();
    this.#feeds = this.#makeFeeds();
    if (state !== undefined) this.become(state);
  }

  get spec(): SessionSpec {
    return this.#spec;
  }

  get parameters(): ReadonlyMap<string, Parameter> {
    return this.#parameters;
  }

  /** Optimizer steps taken, those of a loaded state included. */
  get step(): number {
    return this.#step;
  }

  /** True once a gradient was computed or a step taken. */
  get hasTrained(): boolean {
    return this.#hasTrained;
  }

  #makeFeeds(): Feeds {
    const feeds: Feeds = {};
    const { training } = this.#spec;
    for (const { name, values, shape } of this.#parameters.values())
      feeds[name] = this.#base.tensors.float(values, shape);
    if (training.type === 'lora')
      feeds.lora_scale = this.#base.tensors.float(Float32Array.of(training.alpha / training.rank), []);
    return feeds;
  }

  get moments(): ReadonlyMap<string, Moments> {
    return this.#moments;
  }

  /** Passes whose gradients are in the pending one. */
  get pendingPasses(): number {
    return this.#pendingPasses;
  }

  /** Everything that the session is now. The arrays are its own: see `reading`. */
  get state(): SessionState {
    return {
      training: this.#spec.training,
      step: this.#step,
      pendingPasses: this.#pendingPasses,
      hasTrained: this.#hasTrained,
      values: new Map([...this.#parameters.values()].map(({ name, values }) => [name, values])),
      moments: new Map(this.#moments),
      gradient: this.#gradient === undefined ? undefined : new Map(this.#gradient),
    };
  }

  /**
   * Becomes what the state says, whose arrays belong to the session from now on; whoever reads the old ones may go on.
   *
   * @throws `checkpoint_mismatch` for arrays that are missing or of another length; the session is then as it was
   */
  become({ training, step, pendingPasses, hasTrained, values, moments, gradient }: SessionState): void {
    const parameters = parametersFrom(this.#base, training, { values, moments, gradient });
    this.#spec = { ...this.#spec, training };
    this.#parameters = parameters;
    this.#feeds = this.#makeFeeds();
    this.#moments = new Map(moments);
    this.#gradient = gradient === undefined ? undefined : new Map(gradient);
    this.#pendingPasses = pendingPasses;
    this.#step = step;
    this.#hasTrained = hasTrained;
  }

  /** Reads the arrays as they are now while passes go on; steps are to wait for `unread`, since they change arrays in place. */
  reading<T>(work: (state: SessionState) => Promise<T>): Promise<T> {
    const result = work(this.state);
    const end = () => void this.#reads.delete(ended);
    const ended: Promise<void> = result.then(end, end);
    this.#reads.add(ended);
    return result;
  }

  /** Resolves when nobody reads the arrays. */
  async unread(): Promise<void> {
    while (this.#reads.size > 0) await Promise.all(this.#reads);
  }

  /** The pending gradient by parameter; undefined when there is none. */
  get gradient(): ReadonlyMap<string, Float32Array> | undefined {
    return this.#gradient;
  }

  clearGradient(): void {
    this.#gradient = undefined;
    this.#pendingPasses = 0;
  }

  /** Runs a pass; one that is predicted to need more than `maxMemoryBytes` is refused before any work. Gradients join the pending ones at the very end, so that a pass that fails or is cancelled leaves no trace. */
  async *pass(
    { type, data, loss }: PassOperation,
    { maxMemoryBytes = Number.POSITIVE_INFINITY }: { readonly maxMemoryBytes?: number } = {},
  ): Slices<PassResult> {
    checkData(data, loss, this.#base.config);
    const backward = type === 'forward-backward';
    const { config } = this.#base;
    const { contextLength } = config;
    const limits = { attentionTokens: attentionTokens(config), contextLength };
    const batches = planMicroBatches(data, loss, { ...this.plan, ...limits });
    const { training } = this.spec;
    checkPassMemory(batches, { plan: this.plan, config, training, backward, maxMemoryBytes });
    const outputs = new Array<DatumOutput>(data.length);
    const gradient = new Map<string, Float32Array>();
    const work = batches.reduce((sum, { rows, length }) => sum + rows.length * length, 0);
    let done = 0;
    for (const batch of batches) {
      // Only what keeps everything is worth packed weights, of which each program would have its own.
      const packWeights = backward && this.plan.packWeights === true && keepsAll(batch.form);
      const kind = { trained: trainedBy(this.spec), backward, packWeights, form: batch.form };
      const into = { data, loss, batch, outputs, gradient: backward ? gradient : undefined };
      await this.#base.withProgram(kind, (program) => this.#runBatch({ program, ...into }));
      done += batch.rows.length * batch.length;
      yield done / work;
    }
    if (backward) {
      const norm = globalNorm(gradient.values());
      if (!Number.isFinite(norm)) throw notFinite('gradient', norm);
      this.#addGradient(gradient);
    }
    return this.#result(data, loss, outputs, backward);
  }

  async #runBatch(options: {
    program: TrainingProgram;
    data: readonly Datum[];
    loss: PassOperation['loss'];
    batch: MicroBatch;
    outputs: DatumOutput[];
    gradient: Map<string, Float32Array> | undefined;
  }): Promise<void> {
    const { program, data, loss, batch, outputs, gradient } = options;
    const { rows, length: S, targets: K } = batch;
    const [B, N] = [rows.length, rows.length * S];
    const arrays = fillBatch(data, batch, loss);
    const { tensors } = this.#base;
    const feeds: Feeds = { ...this.#feeds };
    for (const name of program.weightNames) feeds[name] ??= this.#base.weightTensor(name);
    for (const [name, value] of Object.entries(lossScalars(loss)))
      feeds[name] = tensors.float(Float32Array.of(value), []);
    feeds.ids = tensors.int(arrays.ids, [B, S]);
    feeds.positions = tensors.int(arrays.positions, [B, S]);
    feeds.segments = tensors.int(arrays.segments, [B, S]);
    feeds.targets = tensors.int(arrays.targets, [N, K]);
    feeds.weights = tensors.float(arrays.weights, [N, K]);
    feeds.advantages = tensors.float(arrays.advantages, [N, 1]);
    feeds.old_logprobs = tensors.float(arrays.oldLogprobs, [N, 1]);
    feeds.inverse_temperature = tensors.float(arrays.inverseTemperature, [N, 1]);

    const fetched = await program.compiled.run(feeds, ['logprobs', 'losses', ...program.gradientNames.map(gradientOf)]);
    const [logprobs, losses] = [floats(fetched, 'logprobs'), floats(fetched, 'losses')];
    rows.forEach((row, b) => {
      const starts = branchStarts(data, row);
      row.datums.forEach((datum, m) => {
        // The trunk's tokens have no loss; their log-probabilities are those of every datum.
        const [start, own] = [b * S + starts[m]!, data[datum]!.modelInput.length - row.trunk];
        const [trunk, branch] = [
          logprobs.subarray(b * S * K, (b * S + row.trunk) * K),
          logprobs.subarray(start * K, (start + own) * K),
        ];
        let sum = 0;
        for (let i = start * K; i < (start + own) * K; i++) sum += losses[i]!;
        if (!Number.isFinite(sum)) throw notFinite(`data[${datum}]`, sum);
        const all = new Float32Array((row.trunk + own) * K);
        all.set(trunk);
        all.set(branch, row.trunk * K);
        outputs[datum] = { logprobs: all, loss: sum };
      });
    });
    if (gradient === undefined) return;
    for (const name of program.gradientNames) {
      const values = floats(fetched, gradientOf(name));
      if (name === embeddedRows) this.#addRows(gradient, arrays.ids, values);
      else addInto(gradient, name, values);
    }
  }

  /** Adds gradients of looked-up rows to the rows of the embedding table, in the order of the tokens. */
  #addRows(gradient: Map<string, Float32Array>, ids: BigInt64Array, rows: Float32Array): void {
    const width = this.#base.config.hiddenSize;
    let table = gradient.get(embeddingName);
    if (table === undefined) {
      table = new Float32Array(this.parameters.get(embeddingName)!.values.length);
      gradient.set(embeddingName, table);
    }
    ids.forEach((id, n) => {
      const [to, from] = [Number(id) * width, n * width];
      for (let i = 0; i < width; i++) table[to + i] = table[to + i]! + rows[from + i]!;
    });
  }

  #addGradient(gradient: Map<string, Float32Array>): void {
    this.#hasTrained = true;
    this.#pendingPasses++;
    if (this.#gradient === undefined) {
      this.#gradient = gradient;
      return;
    }
    // Somebody may be reading the sums of the passes before this one.
    if (this.#reads.size > 0)
      this.#gradient = new Map([...this.#gradient].map(([name, values]) => [name, values.slice()]));
    for (const [name, values] of gradient) addInto(this.#gradient, name, values);
  }

  #result(
    data: readonly Datum[],
    loss: PassOperation['loss'],
    outputs: readonly DatumOutput[],
    backward: boolean,
  ): PassResult {
    const statistics = new RatioStatistics();
    let lossSum = 0;
    let trainingTokens = 0;
    data.forEach((datum, i) => {
      statistics.add(datum, outputs[i]!.logprobs, loss);
      lossSum += outputs[i]!.loss;
      trainingTokens += datum.modelInput.length;
    });
    const metrics: Record<string, number> = {
      loss: lossSum / data.length,
      'loss:sum': lossSum,
      'actor/pg_loss': lossSum / data.length,
      global_token_num: trainingTokens,
      ...statistics.toMetrics(),
      ...(backward && this.#gradient !== undefined ? { 'actor/grad_norm': globalNorm(this.#gradient.values()) } : {}),
    };
    return { outputs, lossSum, metrics, trainingTokens };
  }

  /** AdamW over every trained array; the pending gradient is used up. Without one it steps with zeros. */
  async *optimStep(adam: AdamParams): Slices<OptimStepResult> {
    const gradient = this.#gradient;
    const gradNorm = gradient === undefined ? 0 : globalNorm(gradient.values());
    if (!Number.isFinite(gradNorm)) {
      this.clearGradient();
      throw new LoopwrightError({
        code: 'operation_failed',
        message: `optimStep: expected a finite gradient, got a norm of ${gradNorm}; the pending gradient was cleared and no weight changed`,
        details: {
          field: 'gradient',
          expected: 'finite',
          got: String(gradNorm),
          remedy: 'lower the learning rate or clip advantages',
        },
      });
    }
    const gradientScale = clipFactor(gradNorm, adam.gradClipNorm);
    this.#hasTrained = true;
    const step = this.#step + 1;
    // From here on the step is not cancellable: it is done whole, in slices that let others in.
    this.clearGradient();
    if (this.#moments.size === 0) this.#moments = zeroMoments(this.#parameters);
    let [sinceYield, done] = [0, 0];
    for (const { name, values, isLoraB } of this.parameters.values()) {
      const moments = this.#moments.get(name)!;
      const learningRate = isLoraB ? adam.learningRate * adam.loraPlusLrRatio : adam.learningRate;
      adamUpdate(values, gradient?.get(name), moments, { ...adam, learningRate, step, gradientScale });
      sinceYield += values.length;
      done++;
      if (sinceYield > elementsPerSlice) {
        sinceYield = 0;
        yield done / this.parameters.size;
      }
    }
    this.#step = step;
    return {
      step,
      gradNorm,
      metrics: {
        'actor/lr': adam.learningRate,
        'actor/grad_norm': gradNorm,
        'optim/lr': adam.learningRate,
        'optim/grad_norm': gradNorm,
        'optim/clip_factor': gradientScale,
        'optim/step': step,
      },
    };
  }
}

function zeroMoments(parameters: ReadonlyMap<string, Parameter>): Map<string, Moments> {
  const lengths = [...parameters.values()].flatMap(({ values: { length } }) => [length, length]);
  const arrays = blockArrays(lengths);
  return new Map([...parameters.keys()].map((name, i) => [name, { m: arrays[2 * i]!, v: arrays[2 * i + 1]! }]));
}

function addInto(sums: Map<string, Float32Array>, name: string, values: Float32Array): void {
  const sum = sums.get(name);
  if (sum === undefined) {
    sums.set(name, values);
    return;
  }
  for (let i = 0; i < sum.length; i++) sum[i] = sum[i]! + values[i]!;
}

function notFinite(field: string, got: number): LoopwrightError {
  return complaint({
    code: 'operation_failed',
    field,
    expected: field === 'gradient' ? 'a finite norm' : 'a finite loss',
    got: String(got),
    remedy: 'look at the logprobs and advantages, and at the learning rate; no gradient of this pass was kept',
  });
}
