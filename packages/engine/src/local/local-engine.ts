/** The embedded engine in this process: base model, training sessions, sampler, and the loop that gives them turns. */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import {
  type AdamParams,
  asLoopwrightError,
  type ComputeLogprobsResult,
  complaint,
  LoopwrightError,
  type ModelCard,
  type OptimStepResult,
  type PassOperation,
  type PassResult,
  type SampleResult,
  type SessionSpec,
} from '@loopwright/protocol';
import type { Tokenizer } from '@loopwright/text';
import type {
  CallOptions,
  Engine,
  ExecutionPlan,
  LogprobsRequest,
  SampleRequest,
  SamplerWeights,
  SavedFiles,
  SessionOptions,
  SessionSnapshot,
} from '../engine.js';
import { cacheInt8Weights, type Int8WeightsFile } from '../formats/int8-weights-file.js';
import { loadModelTokenizer } from '../formats/model-tokenizer.js';
import { openModel } from '../formats/open-model.js';
import { cacheWeightsFile, readWeights } from '../formats/weights-file.js';
import { defaultMaxMemoryBytes } from '../machine-memory.js';
import type { PrecisionEffect } from '../precision.js';
import { defaultSwapAfterMs, type SwapEvent } from '../swap.js';
import { defaultThreads } from '../threads.js';
import { BaseModel } from './base-model.js';
import { checkSpec } from './check-spec.js';
import { loadSession, type SaveOptions, saveSession, sessionAdapter } from './checkpoint.js';
import { sessionBytes } from './memory.js';
import {
  checkModelMemory,
  checkSamplingMemory,
  checkScoringMemory,
  checkSessionMemory,
  defaultCacheBytes,
  planWithin,
} from './memory-limit.js';
import { requireDevice } from './ort/device.js';
import { requirePrecision } from './ort/int8-kernels.js';
import { loadRuntime, TensorFactory } from './ort/runtime.js';
import { executionPlan, type PlanOptions } from './plan.js';
import { checkPromptTargets } from './sample/check-targets.js';
import type { SamplerEvent } from './sample/events.js';
import { measurePrecisionEffect } from './sample/precision-effect.js';
import { keptPromptsShare, Sampler } from './sample/sampler.js';
import { Snapshots } from './sample/snapshots.js';
import { restoreSession, snapshotSession } from './session-snapshots.js';
import { type After, Sessions } from './sessions.js';
import { type SliceEvent, SliceLoop, type Slices } from './slices.js';
import { removeSwapLeftovers } from './swapped-session.js';
import { checkIds } from './train/check-data.js';
import { fingerprintSlices } from './train/fingerprint.js';
import type { TrainingSession } from './train/training-session.js';

export interface LocalEngineOptions extends PlanOptions {
  /** Folder for float32 copies of weights, shared by all engines of a machine. */
  readonly cacheDirectory: string;
  /** Rows at most that are decoded together; 256. */
  readonly maxRows?: number;
  /**
   * Memory of the engine's process at most, nine tenths of the machine's by default. Micro-batches of new sessions are made to fit
   * it, and what is predicted to need more is refused before any work.
   */
  readonly maxMemoryBytes?: number;
  /** Memory for keys and values of rows that are decoded together; 2 GiB, or an eighth of `maxMemoryBytes`. An eighth as much again is for prompts used lately. */
  readonly maxCacheBytes?: number;
  /** A session that had no work for so long is put on the disk until its next call, which shows in time alone; 10 minutes, null for never. */
  readonly swapAfterMs?: number | null;
  /** Folder for such sessions; `swap` in the cache folder. */
  readonly swapDirectory?: string;
  readonly onSwap?: (event: SwapEvent) => void;
  /** The timer of idle sessions. */
  readonly after?: After;
  readonly onSlice?: (event: SliceEvent) => void;
  readonly onSampling?: (event: SamplerEvent) => void;
}

export class LocalEngine implements Engine {
  readonly model: ModelCard;
  readonly incarnation = randomUUID();
  readonly #base: BaseModel;
  readonly #options: LocalEngineOptions & { readonly maxMemoryBytes: number; readonly maxCacheBytes: number };
  readonly #sessions: Sessions;
  readonly #snapshots: Snapshots;
  readonly #sampler: Sampler;
  readonly #loop: SliceLoop;
  readonly #tokenizer: () => Tokenizer;
  #precisionEffect: PrecisionEffect | undefined;
  #disposing: Promise<void> | undefined;

  private constructor(
    base: BaseModel,
    options: LocalEngineOptions,
    { tokenizer, int8 }: { readonly tokenizer: () => Tokenizer; readonly int8: Int8WeightsFile | undefined },
  ) {
    this.model = base.card;
    this.#base = base;
    const { cacheDirectory, maxRows = 256, maxMemoryBytes = defaultMaxMemoryBytes() } = options;
    const { maxCacheBytes = defaultCacheBytes(maxMemoryBytes) } = options;
    this.#options = { ...options, maxMemoryBytes, maxCacheBytes };
    this.#tokenizer = tokenizer;
    // Control tokens count as text here: a stop string may be one.
    const newTextStream = () => this.#tokenizer().streamDecoder({ skipSpecialTokens: false });
    const onWork = () => this.#loop.wake();
    this.#sampler = new Sampler({ maxRows, maxCacheBytes, newTextStream, onEvent: options.onSampling, onWork });
    this.#loop = new SliceLoop(this.#sampler, options.onSlice);
    this.#sessions = new Sessions(base, {
      directory: swapDirectoryOf(options),
      swapAfterMs: options.swapAfterMs === undefined ? defaultSwapAfterMs : options.swapAfterMs,
      onSwap: options.onSwap,
      after: options.after,
    });
    this.#snapshots = new Snapshots(base, {
      cacheDirectory,
      int8,
      onForgotten: (snapshot) => this.#sampler.forget(snapshot),
      betweenSlices: (work) => this.#loop.submit(once(work)),
    });
  }

  /**
   * Loads a model directory or a GGUF file. The first time, a float32 copy of its weights is written into the cache folder, and a rounded one
   * where sampling is to be in int8.
   *
   * @throws `unknown_model`, `unsupported_model`, `model_invalid`, `memory_limit_exceeded`, `disk_full`, `unsupported_host`, `device_unavailable`
   */
  static async load(card: Pick<ModelCard, 'id' | 'directory'>, options: LocalEngineOptions): Promise<LocalEngine> {
    const { device = 'cpu', samplerPrecision = 'float32' } = options;
    await requireDevice(device);
    await requirePrecision(samplerPrecision, device);
    const tensors = new TensorFactory(await loadRuntime());
    await using directory = await openModel(card.directory);
    const { config } = directory;
    checkModelMemory(config, options.maxMemoryBytes ?? defaultMaxMemoryBytes());
    const file = await cacheWeightsFile(directory, { cacheDirectory: options.cacheDirectory });
    await removeSwapLeftovers(swapDirectoryOf(options));
    const weights = await readWeights(file);
    const int8 = samplerPrecision === 'int8' ? await cacheInt8Weights(file, { config, weights }) : undefined;
    const parameters = directory.specs.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
    const { architecture, contextLength, vocabSize } = config;
    const base = new BaseModel({
      card: { id: card.id, directory: directory.directory, architecture, contextLength, vocabSize, parameters },
      config,
      weights,
      file,
      threads: options.threads ?? defaultThreads(),
      device,
      tensors,
    });
    const tokenizer = await loadModelTokenizer(directory.files).catch((error: unknown) => asLoopwrightError(error));
    const requireTokenizer = () => {
      if (tokenizer instanceof Error) throw tokenizer;
      return tokenizer;
    };
    const engine = new LocalEngine(base, options, { tokenizer: requireTokenizer, int8 });
    if (int8 !== undefined) engine.#precisionEffect = await measurePrecisionEffect(engine, config);
    return engine;
  }

  get precisionEffect(): PrecisionEffect | undefined {
    return this.#precisionEffect;
  }

  /** @throws `session_exists`; `invalid_argument` for a rank, alpha, module or seed out of range; `memory_limit_exceeded` */
  async createSession(spec: SessionSpec, { plan }: SessionOptions = {}): Promise<ExecutionPlan> {
    this.#throwIfDisposed();
    this.#sessions.requireFree(spec.name);
    checkSpec(spec);
    const fixed = plan ?? this.#newPlan(spec);
    this.#sessions.create(spec, fixed);
    return fixed;
  }

  /** Of a session that was never made before; one that is made anew keeps its plan, and had its place. */
  #newPlan({ training }: SessionSpec): ExecutionPlan {
    const { config } = this.#base;
    const { maxMemoryBytes, maxCacheBytes } = this.#options;
    const cacheBytes = maxCacheBytes * (1 + keptPromptsShare);
    const wanted = executionPlan(config, this.#options, training);
    const plan = planWithin(wanted, { config, training, maxMemoryBytes, cacheBytes });
    // Those on the disk too: any of them may come back while all others work.
    const others = this.#sessions.trainings.reduce((sum, each) => sum + sessionBytes(config, each), 0);
    checkSessionMemory(plan, { config, training, maxMemoryBytes, others });
    return plan;
  }

  async closeSession(name: string): Promise<void> {
    await this.#sessions.close(name);
  }

  async #use<T>(name: string, work: (session: TrainingSession) => Promise<T>, signal?: AbortSignal): Promise<T> {
    this.#throwIfDisposed();
    return this.#sessions.use(name, async (session) => {
      signal?.throwIfAborted();
      return work(session);
    });
  }

  async pass(session: string, operation: PassOperation, options: CallOptions = {}): Promise<PassResult> {
    const maxMemoryBytes = options.isRepeat === true ? Number.POSITIVE_INFINITY : this.#options.maxMemoryBytes;
    return this.#use(session, (trained) => this.#loop.submit(trained.pass(operation, { maxMemoryBytes }), options));
  }

  async optimStep(session: string, adam: AdamParams, options: CallOptions = {}): Promise<OptimStepResult> {
    return this.#use(session, async (trained) => {
      await trained.unread();
      return this.#loop.submit(fingerprintedStep(trained, adam), { ...options, cancellable: false });
    });
  }

  async clearGradient(session: string): Promise<void> {
    await this.#use(session, async (trained) => trained.clearGradient());
  }

  async saveWeights(
    name: string,
    { version, directory, merge, signal }: { version: string; directory: string; merge: boolean } & CallOptions,
  ): Promise<SavedFiles> {
    return this.#save(name, { version, directory, merge, optimizer: false, signal });
  }

  async saveState(
    name: string,
    { version, directory, signal }: { version: string; directory: string } & CallOptions,
  ): Promise<SavedFiles> {
    return this.#save(name, { version, directory, merge: false, optimizer: true, signal });
  }

  /** Files are written beside the slices, not in one: sampling and other sessions' passes go on meanwhile. */
  async #save(
    name: string,
    { version, signal, ...options }: Omit<SaveOptions, 'signal'> & { version: string; signal: AbortSignal | undefined },
  ): Promise<SavedFiles> {
    const save = async (session: TrainingSession) => {
      const adapter = sessionAdapter(session, this.#base);
      const saved = await saveSession(session, this.#base, { ...options, ...(signal ? { signal } : {}) });
      const isMerged = session.plan.samplerPath === 'merged'; // made from its files at its first use
      if (adapter !== undefined && !isMerged) this.#snapshots.remember(version, adapter);
      return saved;
    };
    return this.#use(name, save, signal);
  }

  async loadState(
    name: string,
    { directory, loadOptimizer, signal }: { directory: string; loadOptimizer: boolean } & CallOptions,
  ): Promise<void> {
    const options = { directory, loadOptimizer, ...(signal ? { signal } : {}) };
    await this.#use(name, (session) => loadSession(session, this.#base, options), signal);
  }

  async snapshot(
    name: string,
    { directory, metadata = '', signal }: { directory: string; metadata?: string } & CallOptions,
  ): Promise<SessionSnapshot> {
    const options = { directory, metadata, ...(signal ? { signal } : {}) };
    return this.#use(name, (session) => snapshotSession(session, options), signal);
  }

  async restore(name: string, { directory, signal }: { directory: string } & CallOptions): Promise<SessionSnapshot> {
    const options = { directory, ...(signal ? { signal } : {}) };
    return this.#use(name, (session) => restoreSession(session, options), signal);
  }

  async sample({ weights, ...spec }: SampleRequest, options: CallOptions = {}): Promise<SampleResult> {
    this.#throwIfDisposed();
    options.signal?.throwIfAborted();
    this.#checkPrompt(spec.prompt, 1);
    checkIds(Int32Array.from(spec.params.stopTokenIds), 'samplingParams.stopTokenIds', this.#base.config.vocabSize);
    const { config } = this.#base;
    const { maxMemoryBytes, samplerPrecision } = this.#options;
    const promptTokens = spec.prompt.length;
    const positions = Math.min(promptTokens + spec.params.maxTokens, config.contextLength);
    checkSamplingMemory(config, { promptTokens, positions, samplerPrecision }, maxMemoryBytes);
    const { promptTargets } = spec;
    if (promptTargets !== undefined) checkPromptTargets(promptTargets, promptTokens, config);
    const isScored = spec.promptLogprobs || spec.topkPromptLogprobs > 0 || promptTargets !== undefined;
    const scored = (spec.topkSampleLogprobs ?? 0) > 0 ? positions : isScored ? promptTokens : 0;
    if (scored > 0) checkScoringMemory(config, scored, maxMemoryBytes);
    if (spec.params.stop.length > 0) this.#tokenizer();
    return this.#snapshots.use(weights, (snapshot) => {
      const result = this.#sampler.submit(spec, snapshot, options);
      this.#loop.wake();
      return result;
    });
  }

  async computeLogprobs(
    { weights, prompt }: LogprobsRequest,
    { signal }: CallOptions = {},
  ): Promise<ComputeLogprobsResult> {
    this.#throwIfDisposed();
    signal?.throwIfAborted();
    this.#checkPrompt(prompt, 0);
    checkScoringMemory(this.#base.config, prompt.length, this.#options.maxMemoryBytes);
    return this.#snapshots.use(weights, async (snapshot) => {
      const scores = this.#sampler.score(prompt, { snapshot, topK: 0, signal });
      this.#loop.wake();
      return { logprobs: (await scores).logprobs, prefillTokens: prompt.length };
    });
  }

  async loadSampler(weights: SamplerWeights, { signal }: CallOptions = {}): Promise<void> {
    this.#throwIfDisposed();
    signal?.throwIfAborted();
    await this.#snapshots.use(weights, async () => undefined);
  }

  #checkPrompt(prompt: Int32Array, newTokens: number): void {
    const { contextLength, vocabSize } = this.#base.config;
    if (prompt.length === 0)
      throw complaint({
        field: 'prompt',
        expected: 'one token at least',
        got: 'none',
        remedy: 'encode a text, or begin with the token that starts a sequence',
      });
    if (prompt.length + newTokens > contextLength) {
      throw complaint({
        code: 'context_length_exceeded',
        field: 'prompt',
        expected: `at most ${contextLength - newTokens} tokens (context ${contextLength})`,
        got: `${prompt.length} tokens`,
        remedy: 'shorten the prompt',
      });
    }
    checkIds(prompt, 'prompt', vocabSize);
  }

  #throwIfDisposed(): void {
    if (this.#disposing !== undefined) throw disposed();
  }

  /** Waits for the slice that is running; calls that are not done fail with `disposed`. */
  [Symbol.asyncDispose](): Promise<void> {
    this.#disposing ??= this.#dispose();
    return this.#disposing;
  }

  async #dispose(): Promise<void> {
    await this.#loop.close(disposed());
    await this.#sessions[Symbol.asyncDispose]();
    await this.#snapshots[Symbol.asyncDispose]();
    await this.#base[Symbol.asyncDispose]();
  }
}

function swapDirectoryOf({
  cacheDirectory,
  swapDirectory = path.join(cacheDirectory, 'swap'),
}: LocalEngineOptions): string {
  return swapDirectory;
}

function disposed(): LoopwrightError {
  return new LoopwrightError({ code: 'disposed', message: 'engine: used after it was closed' });
}

/** A step whose result also tells which weights it made. */
async function* fingerprintedStep(session: TrainingSession, adam: AdamParams): Slices<OptimStepResult> {
  const result = yield* session.optimStep(adam);
  const hashing = fingerprintSlices(session.parameters.values());
  for (;;) {
    const next = hashing.next();
    if (next.done === true) return { ...result, weightsFingerprint: next.value };
    yield 1;
  }
}

/** Work that is one slice. */
// biome-ignore lint/correctness/useYield: a single slice has nothing to yield before its end
async function* once<T>(work: () => Promise<T>): Slices<T> {
  return work();
}
