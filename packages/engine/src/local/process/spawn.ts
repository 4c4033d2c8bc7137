/** The embedded engine in a child process, so that a native crash or a lack of memory never takes the log down. */
import { type ChildProcess, fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { LoopwrightError, type ModelCard } from '@loopwright/protocol';
import type { CallOptions, Engine, OnToken } from '../../engine.js';
import type { PrecisionEffect } from '../../precision.js';
import type { LocalEngineOptions } from '../local-engine.js';
import type { EngineMethod, FromEngine, ToEngine } from './messages.js';

export interface EngineProcessConfig {
  readonly card: Pick<ModelCard, 'id' | 'directory'>;
  readonly options: Omit<LocalEngineOptions, 'onSlice' | 'onSwap' | 'onSampling' | 'after'>;
  readonly reportSlices: boolean;
}

export interface SpawnOptions extends Omit<LocalEngineOptions, 'onSampling' | 'after'> {
  /** The compiled entry of the engine's process; beside this file by default. */
  readonly entry?: URL;
  /** Called once when the process of a loaded engine ends without having been asked to; while it loads, the promise says so. */
  readonly onExit?: (error: LoopwrightError) => void;
  readonly signal?: AbortSignal;
}

type Listeners = { readonly [K in 'onExit' | 'onSlice' | 'onSwap']: SpawnOptions[K] | undefined };

interface Pending {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
  readonly onProgress: ((done: number) => void) | undefined;
  readonly onToken: OnToken | undefined;
}

/**
 * Starts an engine process for a model and waits until it is loaded.
 *
 * @throws what LocalEngine.load throws; `engine_failed` when the process ends early
 */
export async function spawnEngine(
  card: Pick<ModelCard, 'id' | 'directory'>,
  { entry = new URL('./main.js', import.meta.url), onExit, onSlice, onSwap, signal, ...options }: SpawnOptions,
): Promise<Engine> {
  signal?.throwIfAborted();
  const config: EngineProcessConfig = { card, options, reportSlices: onSlice !== undefined };
  const child = fork(fileURLToPath(entry), [JSON.stringify(config)], {
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    execArgv: [],
  });
  const engine = new EngineProcess(child, { onExit, onSlice, onSwap });
  const abort = () => engine.abandon();
  signal?.addEventListener('abort', abort, { once: true });
  try {
    await engine.ready;
  } catch (error) {
    throw signal?.aborted ? signal.reason : error;
  } finally {
    signal?.removeEventListener('abort', abort);
  }
  return engine;
}

class EngineProcess implements Engine {
  readonly ready: Promise<void>;
  #model: ModelCard | undefined;
  #incarnation = '';
  #precisionEffect: PrecisionEffect | undefined;
  readonly #child: ChildProcess;
  readonly #pending = new Map<number, Pending>();
  readonly #listeners: Listeners;
  #nextId = 1;
  #stopping = false;
  #gone: LoopwrightError | undefined;
  #disposed: LoopwrightError | undefined;

  constructor(child: ChildProcess, listeners: Listeners) {
    this.#child = child;
    this.#listeners = listeners;
    this.ready = new Promise((resolve, reject) => {
      child.on('message', (message: FromEngine) => {
        if (message.type === 'ready') {
          this.#model = message.model;
          this.#incarnation = message.incarnation;
          this.#precisionEffect = message.precisionEffect;
          resolve();
        } else if (message.type === 'failed') {
          this.#stopping = true;
          reject(LoopwrightError.fromJSON(message.error));
        } else this.#receive(message);
      });
      child.once('error', (cause) =>
        this.#end(
          new LoopwrightError({
            code: 'engine_failed',
            message: `engine: its process could not be started: ${cause.message}`,
            cause,
          }),
          reject,
        ),
      );
      child.once('exit', (code, killedBy) => {
        const how = killedBy === null ? `exit code ${code}` : `signal ${killedBy}`;
        const memory = killedBy === 'SIGKILL' ? '; the system may have ended it for lack of memory' : '';
        this.#end(
          new LoopwrightError({ code: 'engine_failed', message: `engine: its process ended (${how})${memory}` }),
          reject,
        );
        if (!this.#stopping && this.#model !== undefined) listeners.onExit?.(this.#gone!);
      });
    });
    this.ready.catch(() => undefined);
  }

  get model(): ModelCard {
    if (this.#model === undefined) throw new Error('the engine is not loaded yet');
    return this.#model;
  }

  get incarnation(): string {
    return this.#incarnation;
  }

  get precisionEffect(): PrecisionEffect | undefined {
    return this.#precisionEffect;
  }

  #receive(message: Exclude<FromEngine, { type: 'ready' | 'failed' }>): void {
    if (message.type === 'slice') {
      this.#listeners.onSlice?.(message.event);
      return;
    }
    if (message.type === 'swap') {
      this.#listeners.onSwap?.(message.event);
      return;
    }
    const pending = this.#pending.get(message.id);
    if (pending === undefined) return;
    if (message.type === 'progress') {
      pending.onProgress?.(message.done);
      return;
    }
    if (message.type === 'token') {
      pending.onToken?.(message.token);
      return;
    }
    this.#pending.delete(message.id);
    if (message.type === 'result')
      pending.resolve(message.value as never); // true: it answers the call that made this entry
    else pending.reject(LoopwrightError.fromJSON(message.error));
  }

  #end(error: LoopwrightError, reject: (error: unknown) => void): void {
    this.#gone ??= error;
    reject(error);
    for (const pending of this.#pending.values()) pending.reject(error);
    this.#pending.clear();
  }

  #call<T>(
    method: EngineMethod,
    args: readonly unknown[],
    { signal, onProgress, onToken, isRepeat = false }: CallOptions = {},
  ): Promise<T> {
    const refusal = this.#disposed ?? this.#gone;
    if (refusal !== undefined) return Promise.reject(refusal);
    if (signal?.aborted) return Promise.reject(signal.reason);
    const id = this.#nextId++;
    return new Promise<T>((resolve, reject) => {
      const cancel = () => this.#send({ type: 'cancel', id });
      const done =
        <V>(settle: (value: V) => void) =>
        (value: V) => {
          signal?.removeEventListener('abort', cancel);
          settle(value);
        };
      this.#pending.set(id, {
        resolve: done(resolve),
        reject: done((error) => reject(signal?.aborted ? signal.reason : error)),
        onProgress,
        onToken,
      });
      signal?.addEventListener('abort', cancel, { once: true });
      try {
        const wanted = { progress: onProgress !== undefined, tokens: onToken !== undefined };
        this.#send({ type: 'call', id, method, args, ...wanted, repeat: isRepeat });
      } catch (error) {
        // What cannot be cloned is refused here; nothing was sent.
        this.#pending.get(id)?.reject(error);
        this.#pending.delete(id);
      }
    });
  }

  /** Options of a call that takes its own and those of every call together: the latter stay on this side. */
  #callWithFiles<T>(
    method: EngineMethod,
    session: string,
    { signal, onProgress, isRepeat, ...rest }: CallOptions & object,
  ): Promise<T> {
    return this.#call(method, [session, rest], {
      ...(signal ? { signal } : {}),
      ...(onProgress ? { onProgress } : {}),
      ...(isRepeat ? { isRepeat } : {}),
    });
  }

  #send(message: ToEngine): void {
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  createSession: Engine['createSession'] = (spec, options = {}) => this.#call('createSession', [spec, options]);
  closeSession: Engine['closeSession'] = (name) => this.#call('closeSession', [name]);
  pass: Engine['pass'] = (session, operation, options) => this.#call('pass', [session, operation], options);
  optimStep: Engine['optimStep'] = (session, adam, options) => this.#call('optimStep', [session, adam], options);
  clearGradient: Engine['clearGradient'] = (session) => this.#call('clearGradient', [session]);
  saveWeights: Engine['saveWeights'] = (session, options) => this.#callWithFiles('saveWeights', session, options);
  saveState: Engine['saveState'] = (session, options) => this.#callWithFiles('saveState', session, options);
  loadState: Engine['loadState'] = (session, options) => this.#callWithFiles('loadState', session, options);
  snapshot: Engine['snapshot'] = (session, options) => this.#callWithFiles('snapshot', session, options);
  restore: Engine['restore'] = (session, options) => this.#callWithFiles('restore', session, options);
  sample: Engine['sample'] = (request, options) => this.#call('sample', [request], options);
  computeLogprobs: Engine['computeLogprobs'] = (request, options) => this.#call('computeLogprobs', [request], options);
  loadSampler: Engine['loadSampler'] = (weights, options) => this.#call('loadSampler', [weights], options);

  /** Ends the process at once; for an engine that is still loading. */
  abandon(): void {
    this.#stopping = true;
    this.#child.kill('SIGKILL');
  }

  /** Ends the process; calls that are running fail with `engine_failed`, later ones with `disposed`. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stopping = true;
    if (this.#gone !== undefined) return; // calls go on to say why
    this.#disposed ??= new LoopwrightError({ code: 'disposed', message: 'engine: used after it was closed' });
    const ended = new Promise<void>((resolve) => this.#child.once('exit', () => resolve()));
    this.#send({ type: 'stop' });
    // A native computation cannot be interrupted; what it would have computed is not needed any more.
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), 2000);
    await ended;
    clearTimeout(timer);
  }
}
