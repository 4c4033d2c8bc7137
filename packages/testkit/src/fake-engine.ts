/**
 * A deterministic Engine without a model, for tests of order, overlap, cancellation and rebuilding.
 *
 * Its weights are one 32-bit number: every pass folds its tokens into a pending gradient, every step folds the gradient
 * into the weights and a moment. Sampled tokens and logprobs are hashes of the weights, so two sessions that went through
 * the same operations answer alike, and any lost, doubled or reordered operation shows.
 */
import { mkdir, open, readFile } from 'node:fs/promises';
import { join } from 'node:path';
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
} from '@loopwright/engine';
import {
  type AdamParams,
  type ComputeLogprobsResult,
  complaint,
  LoopwrightError,
  type ModelCard,
  type OptimStepResult,
  type PassOperation,
  type PassResult,
  type SampleResult,
  type SessionSpec,
  type VersionId,
} from '@loopwright/protocol';
import { hash, logprob, promptLogprobs } from './fake-numbers.js';
import { type FakeMethod, type Hold, type PendingHold, pendingHold } from './hold.js';

interface FakeSession {
  readonly spec: SessionSpec;
  weights: number;
  moment: number;
  step: number;
  gradient: number;
  pendingPasses: number;
}

export interface FakeEngineOptions {
  readonly model?: Partial<ModelCard>;
  /** Name of the first incarnation; later ones get `-2`, `-3`, … */
  readonly incarnation?: string;
  /** In the plans of new sessions; 1. */
  readonly threads?: number;
  readonly device?: ExecutionPlan['device'];
  /** Called by `die`. */
  readonly onExit?: () => void;
}

export class FakeEngine implements Engine {
  readonly model: ModelCard;
  /** Every call in order of its start, such as `pass:s1:forward-backward`; ends are written as `/pass:s1:forward-backward`. */
  readonly calls: string[] = [];
  disposed = false;
  readonly #sessions = new Map<string, FakeSession>();
  readonly #holds = new Map<FakeMethod, PendingHold[]>();
  readonly #running = new Set<(error: Error) => void>();
  readonly #name: string;
  readonly #threads: number;
  readonly #device: NonNullable<ExecutionPlan['device']>;
  readonly #onExit: () => void;
  #generation = 1;
  #dead = false;

  constructor({
    model = {},
    incarnation = 'fake',
    threads = 1,
    device = 'cpu',
    onExit = () => {},
  }: FakeEngineOptions = {}) {
    this.model = {
      id: 'fake-model',
      architecture: 'llama',
      contextLength: 1024,
      vocabSize: 64,
      parameters: 1000,
      directory: '',
      ...model,
    };
    this.#name = incarnation;
    this.#threads = threads;
    this.#device = device;
    this.#onExit = onExit;
  }

  get incarnation(): string {
    return this.#generation === 1 ? this.#name : `${this.#name}-${this.#generation}`;
  }

  /** Names of the sessions that hold memory now. */
  get sessionNames(): string[] {
    return [...this.#sessions.keys()];
  }

  /** The state of a session as one comparable value. */
  fingerprint(name: string): string {
    const session = this.#session(name);
    return [session.weights, session.moment, session.step, session.gradient, session.pendingPasses].join('/');
  }

  /** Holds the next call of `method` at its start (holds queue up: two calls of this hold two calls). */
  hold(method: FakeMethod): Hold {
    const hold = pendingHold();
    this.#holds.set(method, [...(this.#holds.get(method) ?? []), hold]);
    return hold;
  }

  /** Makes the next call of `method` reject with `error`. */
  failNext(method: FakeMethod, error: Error): void {
    this.hold(method).fail(error);
  }

  /** Dies and comes back: every running call rejects with `engine_failed`, all sessions are gone, the incarnation changes. */
  crash(): void {
    this.#generation += 1;
    this.#sessions.clear();
    const error = new LoopwrightError({ code: 'engine_failed', message: 'the fake engine crashed' });
    for (const reject of [...this.#running]) reject(error);
  }

  /** Ends for good, as an engine whose process died: running and later calls reject, the incarnation stays. */
  die(): void {
    this.#dead = true;
    this.#sessions.clear();
    for (const reject of [...this.#running]) reject(gone());
    this.#onExit();
  }

  async createSession(spec: SessionSpec, options: SessionOptions = {}): Promise<ExecutionPlan> {
    return this.#call('createSession', spec.name, {}, () => {
      const weights = hash(spec.seed, 0x5eed);
      this.#sessions.set(spec.name, { spec, weights, moment: 0, step: 0, gradient: 0, pendingPasses: 0 });
      return (
        options.plan ?? {
          engine: 'fake',
          runtimeVersion: '1',
          threads: this.#threads,
          device: this.#device,
          deterministic: this.#device === 'cpu',
          samplerPath: 'apart',
          microBatchTokens: 1024,
          lengthMultiple: 8,
        }
      );
    });
  }

  async closeSession(name: string): Promise<void> {
    this.calls.push(`closeSession:${name}`);
    const hold = this.#holds.get('closeSession')?.shift();
    hold?.enter();
    await hold?.released;
    this.#sessions.delete(name);
  }

  async pass(name: string, operation: PassOperation, options: CallOptions = {}): Promise<PassResult> {
    return this.#call('pass', `${name}:${operation.type}`, options, () => {
      const session = this.#session(name);
      let trainingTokens = 0;
      let lossSum = 0;
      let gradient = session.gradient;
      const outputs = operation.data.map((datum) => {
        const logprobs = Float32Array.from(datum.targetTokens.data, (token, position) =>
          logprob(session.weights, token, position),
        );
        trainingTokens += datum.modelInput.length;
        for (const token of datum.modelInput) gradient = hash(gradient ^ session.weights, token + 1);
        const loss = logprobs.reduce((sum, value) => sum - value, 0);
        lossSum += loss;
        return { logprobs, loss };
      });
      if (operation.type === 'forward-backward') {
        session.gradient = gradient;
        session.pendingPasses += 1;
      }
      return { outputs, lossSum, metrics: { 'loss/mean': lossSum / Math.max(1, outputs.length) }, trainingTokens };
    });
  }

  async optimStep(name: string, adam: AdamParams, options: CallOptions = {}): Promise<OptimStepResult> {
    return this.#call('optimStep', name, options, () => {
      const session = this.#session(name);
      session.moment = hash(session.moment, session.gradient);
      session.weights = hash(session.weights ^ session.moment, Math.round(adam.learningRate * 1e9));
      const gradNorm = session.gradient / 2 ** 32;
      session.gradient = 0;
      session.pendingPasses = 0;
      session.step += 1;
      return {
        step: session.step,
        gradNorm,
        metrics: { 'optim/step': session.step, 'optim/lr': adam.learningRate },
        weightsFingerprint: session.weights.toString(16),
      };
    });
  }

  async clearGradient(name: string): Promise<void> {
    this.calls.push(`clearGradient:${name}`);
    const session = this.#session(name);
    session.gradient = 0;
    session.pendingPasses = 0;
  }

  async saveWeights(
    name: string,
    { directory, merge, signal }: { version: VersionId; directory: string; merge: boolean } & CallOptions,
  ): Promise<SavedFiles> {
    return this.#call('saveWeights', name, signal === undefined ? {} : { signal }, async () => {
      const { weights } = this.#session(name);
      const files = ['adapter.json', ...(merge ? ['merged/model.json'] : [])];
      for (const file of files) await writeDurably(join(directory, file), JSON.stringify({ weights }));
      return { files };
    });
  }

  async saveState(
    name: string,
    { directory, signal }: { version: VersionId; directory: string } & CallOptions,
  ): Promise<SavedFiles> {
    return this.#call('saveState', name, signal === undefined ? {} : { signal }, async () => {
      const { weights, moment, step } = this.#session(name);
      await writeDurably(join(directory, 'adapter.json'), JSON.stringify({ weights }));
      await writeDurably(join(directory, 'optimizer.json'), JSON.stringify({ moment, step }));
      return { files: ['adapter.json', 'optimizer.json'] };
    });
  }

  async loadState(
    name: string,
    { directory, loadOptimizer, signal }: { directory: string; loadOptimizer: boolean } & CallOptions,
  ): Promise<void> {
    return this.#call('loadState', name, signal === undefined ? {} : { signal }, async () => {
      const session = this.#session(name);
      session.weights = await readWeights(directory);
      session.gradient = 0;
      session.pendingPasses = 0;
      session.moment = 0;
      session.step = 0;
      if (loadOptimizer) {
        const saved: unknown = JSON.parse(await readFile(join(directory, 'optimizer.json'), 'utf8'));
        session.moment = numberIn(saved, 'moment');
        session.step = numberIn(saved, 'step');
      }
    });
  }

  async snapshot(
    name: string,
    { directory, metadata = '', signal }: { directory: string; metadata?: string } & CallOptions,
  ): Promise<SessionSnapshot> {
    return this.#call('snapshot', name, signal === undefined ? {} : { signal }, async () => {
      const { spec, ...state } = this.#session(name);
      const text = JSON.stringify({ seed: spec.seed, metadata, ...state });
      await writeDurably(join(directory, 'session.json'), text);
      return { step: state.step, pendingPasses: state.pendingPasses, metadata, sizeBytes: text.length };
    });
  }

  async restore(name: string, { directory, signal }: { directory: string } & CallOptions): Promise<SessionSnapshot> {
    return this.#call('restore', name, signal === undefined ? {} : { signal }, async () => {
      const session = this.#session(name);
      const text = await readFile(join(directory, 'session.json'), 'utf8').catch(() => {
        throw complaint({ code: 'unknown_version', field: 'directory', expected: 'a snapshot', got: 'none' });
      });
      const saved: unknown = JSON.parse(text);
      const seed = numberIn(saved, 'seed');
      if (seed !== session.spec.seed) {
        const expected = `${session.spec.seed}`;
        throw complaint({ code: 'checkpoint_mismatch', field: 'spec.seed', expected, got: `${seed}` });
      }
      for (const key of ['weights', 'moment', 'step', 'gradient', 'pendingPasses'] as const)
        session[key] = numberIn(saved, key);
      const { metadata } = saved as { metadata: string }; // true: snapshot wrote it
      return { step: session.step, pendingPasses: session.pendingPasses, metadata, sizeBytes: text.length };
    });
  }

  async sample(request: SampleRequest, options: CallOptions = {}): Promise<SampleResult> {
    return this.#call('sample', describe(request.weights), options, async () => {
      const weights = await this.#samplerWeights(request.weights);
      const sequences = Array.from({ length: request.numSamples }, (_, sample) => {
        const key = hash(hash(request.params.seed, sample), weights);
        const tokens = Int32Array.from(
          { length: request.params.maxTokens },
          (_unused, position) => hash(key, position) % this.model.vocabSize,
        );
        const logprobs = Float32Array.from(tokens, (token, position) => logprob(weights, token, position));
        tokens.forEach((id, position) => {
          options.onToken?.({ sample, position, id, logprob: logprobs[position]! });
        });
        return { tokens, logprobs, stopReason: 'length' as const };
      });
      return {
        sequences,
        ...(request.promptLogprobs ? { promptLogprobs: promptLogprobs(weights, request.prompt) } : {}),
        prefillTokens: request.prompt.length,
      };
    });
  }

  async computeLogprobs(request: LogprobsRequest, options: CallOptions = {}): Promise<ComputeLogprobsResult> {
    return this.#call('computeLogprobs', describe(request.weights), options, async () => {
      const weights = await this.#samplerWeights(request.weights);
      return { logprobs: promptLogprobs(weights, request.prompt), prefillTokens: request.prompt.length };
    });
  }

  async loadSampler(weights: SamplerWeights, options: CallOptions = {}): Promise<void> {
    return this.#call('loadSampler', describe(weights), options, async () => {
      await this.#samplerWeights(weights);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.disposed) return;
    this.disposed = true;
    this.crash();
  }

  async #samplerWeights(weights: SamplerWeights): Promise<number> {
    return weights.type === 'base' ? hash(0xba5e, this.model.vocabSize) : readWeights(weights.directory);
  }

  #session(name: string): FakeSession {
    const session = this.#sessions.get(name);
    if (session === undefined) {
      throw complaint({ code: 'unknown_session', field: 'session', expected: 'a session of this engine', got: name });
    }
    return session;
  }

  async #call<T>(method: FakeMethod, label: string, options: CallOptions, work: () => T | Promise<T>): Promise<T> {
    const call = `${method}:${label}`;
    options.signal?.throwIfAborted();
    if (this.#dead) throw gone();
    this.calls.push(call);
    const hold = this.#holds.get(method)?.shift();
    let stop: (error: Error) => void = () => {};
    const stopped = new Promise<never>((_, reject) => {
      stop = reject;
    });
    stopped.catch(() => {}); // raced below, and left behind when the work wins
    this.#running.add(stop);
    const onAbort = () => stop(new LoopwrightError({ code: 'cancelled', message: `${method} was cancelled` }));
    options.signal?.addEventListener('abort', onAbort, { once: true });
    try {
      hold?.enter();
      await Promise.race([stopped, hold === undefined ? Promise.resolve() : hold.released]);
      const result = await Promise.race([stopped, work()]);
      options.onProgress?.(1);
      this.calls.push(`/${call}`);
      return result;
    } finally {
      this.#running.delete(stop);
      options.signal?.removeEventListener('abort', onAbort);
    }
  }
}

function gone(): LoopwrightError {
  return new LoopwrightError({ code: 'engine_failed', message: 'the fake engine is gone' });
}

function describe(weights: SamplerWeights): string {
  return weights.type === 'base' ? 'base' : weights.id;
}

async function readWeights(directory: string): Promise<number> {
  return numberIn(JSON.parse(await readFile(join(directory, 'adapter.json'), 'utf8')), 'weights');
}

function numberIn(value: unknown, key: string): number {
  const found = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[key] : undefined;
  if (typeof found !== 'number') {
    throw complaint({ code: 'model_invalid', field: key, expected: 'a number', got: typeof found });
  }
  return found;
}

async function writeDurably(path: string, text: string): Promise<void> {
  await mkdir(join(path, '..'), { recursive: true });
  const file = await open(path, 'w');
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}
