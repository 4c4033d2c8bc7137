/**
 * Drives one session: training operations strictly in order and one at a time, sampling operations beside them, and the
 * session in the engine made anew from the log whenever the engine's incarnation is another than the one it was made in.
 */
import type { Engine } from '@loopwright/engine';
import { asLoopwrightError, type ErrorCode, LoopwrightError, type VersionId } from '@loopwright/protocol';
import type { Logger } from 'pino';
import type { EngineHost } from '../engines/engine-host.js';
import type { Ending, SessionEffects } from '../operations/operation-log.js';
import type { OperationRecord, SamplingRecord, TrainingRecord } from '../operations/operation-record.js';
import type { SessionRecord } from '../sessions/session-record.js';
import type { SessionRepository } from '../sessions/session-repository.js';
import { type Execution, type ExecutionTools, executeSampling, executeTraining } from './execute.js';
import { type Progress, trainingWait } from './progress.js';
import { rebuildSession } from './rebuild.js';
import { Trace } from './trace.js';

export interface RunnerOptions {
  readonly session: SessionRecord;
  readonly tools: ExecutionTools;
  readonly sessions: SessionRepository;
  readonly engines: EngineHost;
  readonly logger: Logger;
  /** Sampling operations of this session that run at the same time. */
  readonly samplingConcurrency: number;
  /** How long a running operation may take to give up when the session ends. */
  readonly stopGraceMs: number;
}

interface Running {
  readonly record: OperationRecord;
  readonly startedAtMs: number;
  readonly abort: AbortController;
  done: number | undefined;
  readonly finished: Promise<void>;
  readonly markFinished: () => void;
}

/** An operation that the engine's end took down is run again this often; then it is the likely cause. */
const maxAttempts = 3;
/** Between attempts to write down an ending, when the disk is full. */
const retryWriteMs = 1000;

export class SessionRunner {
  readonly trace = new Trace();
  readonly #session: SessionRecord;
  readonly #options: RunnerOptions;
  /** Accepted, and their turn not over yet: waiting, running, or cancelled while they waited. */
  readonly #training = new Map<number, TrainingRecord>();
  readonly #spent = new Set<number>();
  readonly #sampling: SamplingRecord[] = [];
  readonly #running = new Map<string, Running>();
  #next: number;
  #step: number;
  #gradientIncomplete: boolean;
  #parent: VersionId | null = null;
  #phase: 'loading' | 'rebuilding' | 'ready' = 'loading';
  #turning = false;
  #blocked = false;
  #cancelGapTimer: () => void = () => {};
  /** Of the engine in which this session lives; undefined when it has to be made (again). */
  #incarnation: string | undefined;
  #ended = false;
  #suspended = false;
  #ending: Promise<void> | undefined;
  #starting: Promise<void> | undefined;

  constructor(options: RunnerOptions) {
    this.#options = options;
    this.#session = options.session;
    this.#next = options.session.nextSequenceNumber;
    this.#step = options.session.step;
    this.#gradientIncomplete = options.session.gradientIncomplete;
    this.#blocked = options.session.status === 'Blocked';
  }

  /** Takes up what the log holds, makes the session in the engine, and goes on. Resolves when it runs or has failed. */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  /** Hands over an accepted operation. */
  add(record: OperationRecord): void {
    if (this.#ended || this.#suspended || record.endedAtMs !== null) return;
    if (record.kind === 'training') {
      if (record.sequenceNumber >= this.#next && !this.#training.has(record.sequenceNumber)) {
        this.#training.set(record.sequenceNumber, record);
      }
      this.#takeTurns();
    } else {
      this.#sampling.push(record);
      this.#fillSampling();
    }
  }

  /** A refused submission used this number up. */
  spend(sequenceNumber: number): void {
    this.#spent.add(sequenceNumber);
    this.#takeTurns();
  }

  /** Where an operation stands that has not ended. */
  progress(record: OperationRecord): Progress {
    const running = this.#running.get(record.id);
    if (running !== undefined && this.isRunning(record.id)) {
      const { startedAtMs, done } = running;
      return { state: 'running', sinceMs: startedAtMs, position: 0, ...(done === undefined ? {} : { done }) };
    }
    const sinceMs = record.createdAtMs;
    if (record.kind === 'sampling') {
      const position = Math.max(
        0,
        this.#sampling.findIndex(({ id }) => id === record.id),
      );
      const waitingFor = `a free place: ${this.#runningOf('sampling')} sampling operations run`;
      return { state: 'queued', sinceMs, position, waitingFor };
    }
    const wait = trainingWait(record.sequenceNumber, {
      next: this.#next,
      open: this.#openTraining(),
      settled: (number) => this.#spent.has(number) || this.#training.has(number),
      nowMs: this.#options.tools.clock.now(),
    });
    const waitingFor =
      this.#phase === 'ready'
        ? wait.waitingFor
        : this.#phase === 'loading'
          ? 'the base model to load'
          : 'the session to be rebuilt after a restart';
    return { state: 'queued', sinceMs, position: wait.position, waitingFor };
  }

  /** Whether an engine works on it; not while its session is being rebuilt. */
  isRunning(id: string): boolean {
    const running = this.#running.get(id);
    return running !== undefined && (running.record.kind === 'sampling' || this.#phase === 'ready');
  }

  /** Ends a waiting operation at once, and asks a running pass or sampling operation to give up; others run to their end. */
  async cancel(record: OperationRecord): Promise<void> {
    const running = this.#running.get(record.id);
    if (running !== undefined) {
      if (record.kind === 'training' && record.type !== 'forward' && record.type !== 'forward-backward') return;
      running.abort.abort(cancelled('the caller cancelled the operation'));
      await running.finished;
      return;
    }
    const ending: Ending = { status: 'Failed', error: cancelled('the caller cancelled the operation while it waited') };
    if (record.kind === 'sampling') {
      const index = this.#sampling.findIndex(({ id }) => id === record.id);
      if (index >= 0) this.#sampling.splice(index, 1);
    } else if (this.#training.has(record.sequenceNumber)) {
      // Its turn still comes: a pass that was given up must be missed by the step behind it.
      this.#training.set(record.sequenceNumber, {
        ...record,
        status: 'Failed',
        endedAtMs: this.#options.tools.clock.now(),
      });
    }
    await this.#options.tools.log.finish({ session: this.#session, record, ending, startedAtMs: null, effects: {} });
  }

  /** Ends the session: running operations are cancelled, waiting ones skipped, the engine's memory is freed. */
  end(to: 'Stopped' | 'Expired' | 'Failed', error?: LoopwrightError): Promise<void> {
    this.#ending ??= this.#end(to, error);
    return this.#ending;
  }

  /** Lets go without a trace in the log, when the server closes: what has not ended is run again by the next one. */
  async suspend(): Promise<void> {
    this.#suspended = true;
    this.#cancelGapTimer();
    await this.#giveUpRunning('the server closes');
  }

  async #start(): Promise<void> {
    const { sessions, tools } = this.#options;
    const { id, status, nextSequenceNumber } = this.#session;
    try {
      for (const number of await tools.log.spentNumbers(id)) this.#spent.add(number);
      const records = (await tools.log.training(id)).filter((record) => record.kind === 'training');
      const loads = records.filter((record) => record.type === 'load-state' && record.status === 'Completed');
      this.#parent = loads.at(-1)?.readsVersion ?? null;
      for (const record of records) {
        if (record.sequenceNumber >= nextSequenceNumber) this.#training.set(record.sequenceNumber, record);
      }
      for (const record of await tools.log.ofSession(id, { open: true })) {
        if (record.kind === 'sampling' && !this.#sampling.some((known) => known.id === record.id))
          this.#sampling.push(record);
      }
      this.#phase = records.length === 0 ? 'loading' : 'rebuilding';
      const isNew = status === 'Created' || status === 'Scheduled';
      if (isNew) await sessions.change(id, { from: ['Created'], to: 'Scheduled' });
      const plan = await this.#enterEngine();
      if (this.#ended || this.#suspended) return;
      if (isNew)
        await sessions.change(id, { from: ['Scheduled'], to: 'Running', ...(plan === undefined ? {} : { plan }) });
      this.#phase = 'ready';
      this.#takeTurns();
      this.#fillSampling();
    } catch (cause) {
      await this.#fail(asLoopwrightError(cause, 'engine_failed'));
    }
  }

  /** Makes the session in the engine unless it is there already. */
  async #enterEngine(): Promise<NonNullable<SessionRecord['plan']> | undefined> {
    for (let attempt = 1; ; attempt++) {
      const engine = await this.#engine();
      const { incarnation } = engine;
      if (incarnation === this.#incarnation) return undefined;
      const { sessions, tools } = this.#options;
      try {
        const session = await sessions.byId(this.#session.id);
        const plan = await rebuildSession({ engine, session, nextSequenceNumber: this.#next, tools });
        this.#incarnation = incarnation;
        if (this.#ended) await engine.closeSession(this.#session.name);
        return plan;
      } catch (error) {
        if (attempt >= maxAttempts || !(await this.#engineIsGone(engine, incarnation, error))) throw error;
      }
    }
  }

  #engine(): Promise<Engine> {
    return this.#options.engines.engine(this.#session.spec.baseModel);
  }

  /** Whether a failure came from the end of the engine's process, so that the same call may work on its successor. */
  async #engineIsGone(engine: Engine, incarnation: string, error: unknown): Promise<boolean> {
    const { engines } = this.#options;
    const model = this.#session.spec.baseModel;
    if (engine.incarnation !== incarnation || !engines.isServing(model, engine)) return true;
    if (!LoopwrightError.isInstance(error) || error.code !== 'disposed') return false;
    await engines.discard(model, engine);
    return true;
  }

  #takeTurns(): void {
    if (this.#turning || this.#phase !== 'ready' || this.#ended || this.#suspended) return;
    this.#turning = true;
    this.#turns().catch(async (error: unknown) => {
      this.#turning = false;
      if (!this.#suspended) await this.#fail(asLoopwrightError(error));
    });
  }

  async #turns(): Promise<void> {
    while (!this.#ended && !this.#suspended) {
      while (this.#spent.has(this.#next)) this.#next += 1;
      const record = this.#training.get(this.#next);
      if (record !== undefined) {
        await this.#unblock();
        await this.#turn(record);
        continue;
      }
      await this.#noteGap();
      if (!this.#training.has(this.#next) && !this.#spent.has(this.#next)) break;
    }
    this.#turning = false;
  }

  /** The turn of one training operation, from its start to its ending in the log. */
  async #turn(record: TrainingRecord): Promise<void> {
    const { log } = this.#options.tools;
    if (record.endedAtMs !== null) {
      const effects = this.#failureEffects(record);
      await log.apply(this.#session.id, effects);
      this.#passTurn(record, effects);
      return;
    }
    const running = this.#begin(record);
    try {
      const outcome = await this.#attemptTraining(record, running);
      if (outcome === undefined) return;
      const effects = await this.#finish(record, running, outcome);
      if (effects !== undefined) this.#passTurn(record, effects);
    } finally {
      this.#close(running);
    }
  }

  /** Undefined when the session was let go meanwhile. */
  async #attemptTraining(record: TrainingRecord, running: Running): Promise<Execution | LoopwrightError | undefined> {
    const { tools } = this.#options;
    const operation = await tools.log.operation(record);
    for (let attempt = 1; ; attempt++) {
      if (this.#incarnation !== (await this.#engine()).incarnation) {
        this.#phase = 'rebuilding';
        await this.#enterEngine();
        this.#phase = 'ready';
      }
      const engine = await this.#engine();
      const incarnation = this.#incarnation ?? engine.incarnation;
      try {
        if (record.type === 'optim-step' && this.#gradientIncomplete) {
          await engine.clearGradient(this.#session.name);
          return gradientIncomplete();
        }
        return await executeTraining(tools, {
          engine,
          session: this.#session,
          record,
          operation: operation as Parameters<typeof executeTraining>[1]['operation'], // true: a training record holds a training operation
          lineage: { step: this.#step, parent: this.#parent },
          options: this.#callOptions(running),
        });
      } catch (error) {
        if (this.#suspended) return undefined;
        if (running.abort.signal.aborted) return asLoopwrightError(running.abort.signal.reason, 'cancelled');
        if (attempt >= maxAttempts || !(await this.#engineIsGone(engine, incarnation, error))) {
          return asLoopwrightError(error, 'operation_failed');
        }
      }
    }
  }

  #passTurn(record: TrainingRecord, effects: SessionEffects): void {
    this.#training.delete(record.sequenceNumber);
    this.#next = record.sequenceNumber + 1;
    this.#step = effects.step ?? this.#step;
    this.#gradientIncomplete = effects.gradientIncomplete ?? this.#gradientIncomplete;
  }

  #fillSampling(): void {
    if (this.#phase === 'loading' || this.#ended || this.#suspended) return;
    while (this.#runningOf('sampling') < this.#options.samplingConcurrency) {
      const record = this.#sampling.shift();
      if (record === undefined) return;
      const running = this.#begin(record);
      this.#sample(record, running)
        .catch((error: unknown) => {
          this.#options.logger.error(
            { operation: record.id, code: asLoopwrightError(error).code },
            'sampling was lost',
          );
        })
        .finally(() => {
          this.#close(running);
          this.#fillSampling();
        });
    }
  }

  async #sample(record: SamplingRecord, running: Running): Promise<void> {
    const outcome = await this.#attemptSampling(record, running);
    if (outcome !== undefined) await this.#finish(record, running, outcome);
  }

  async #attemptSampling(record: SamplingRecord, running: Running): Promise<Execution | LoopwrightError | undefined> {
    const { tools } = this.#options;
    for (let attempt = 1; ; attempt++) {
      let engine: Engine | undefined;
      let incarnation = '';
      try {
        const operation = await tools.log.operation(record);
        engine = await this.#engine();
        incarnation = engine.incarnation;
        return await executeSampling(tools, {
          engine,
          session: this.#session,
          record,
          operation: operation as Parameters<typeof executeSampling>[1]['operation'], // true: a sampling record holds a sampling operation
          options: this.#callOptions(running),
        });
      } catch (error) {
        if (this.#suspended) return undefined;
        if (running.abort.signal.aborted) return asLoopwrightError(running.abort.signal.reason, 'cancelled');
        const isGone = engine !== undefined && (await this.#engineIsGone(engine, incarnation, error));
        if (!isGone || attempt >= maxAttempts) return asLoopwrightError(error, 'operation_failed');
      }
    }
  }

  #callOptions(running: Running): { signal: AbortSignal; onProgress: (done: number) => void } {
    const { clock } = this.#options.tools;
    return {
      signal: running.abort.signal,
      onProgress: (done) => {
        running.done = done;
        this.#traces.get(running)?.slice(clock.now(), done);
      },
    };
  }

  readonly #traces = new WeakMap<Running, ReturnType<Trace['start']>>();

  #begin(record: OperationRecord): Running {
    let markFinished: () => void = () => {};
    const finished = new Promise<void>((resolve) => {
      markFinished = resolve;
    });
    const startedAtMs = this.#options.tools.clock.now();
    const running: Running = {
      record,
      startedAtMs,
      abort: new AbortController(),
      done: undefined,
      finished,
      markFinished,
    };
    this.#running.set(record.id, running);
    const { id: operationId, kind, type } = record;
    const order = record.kind === 'training' ? { sequenceNumber: record.sequenceNumber } : {};
    this.#traces.set(running, this.trace.start({ operationId, kind, type, ...order, startedAtMs }));
    return running;
  }

  #close(running: Running): void {
    this.#running.delete(running.record.id);
    this.#traces.get(running)?.end(this.#options.tools.clock.now());
    running.markFinished();
  }

  /**
   * Writes an ending down. A result that can't be kept (full disk) did not happen: the operation fails, and the session is made anew
   * before its next turn. A failure that can't be written either is tried again until it can.
   * @returns what the ending changed; undefined when the session was let go meanwhile
   */
  async #finish(
    record: OperationRecord,
    running: Running,
    outcome: Execution | LoopwrightError,
  ): Promise<SessionEffects | undefined> {
    const { tools, logger } = this.#options;
    let current = outcome;
    for (;;) {
      const failed = LoopwrightError.isInstance(current);
      const own: SessionEffects = LoopwrightError.isInstance(current)
        ? this.#failureEffects(record, current.code)
        : current.effects;
      const effects: SessionEffects =
        record.kind === 'training' ? { ...own, nextSequenceNumber: record.sequenceNumber + 1 } : own;
      const ending: Ending = LoopwrightError.isInstance(current)
        ? { status: 'Failed', error: current }
        : { status: 'Completed', done: current.done };
      const alongside = LoopwrightError.isInstance(current) ? undefined : current.alongside;
      try {
        await tools.log.finish({
          session: this.#session,
          record,
          ending,
          startedAtMs: running.startedAtMs,
          effects,
          ...(alongside === undefined ? {} : { alongside }),
        });
        if (!failed && record.type === 'load-state') this.#parent = record.readsVersion;
        logger.debug({ operation: record.id, type: record.type, status: ending.status }, 'operation ended');
        return effects;
      } catch (error) {
        if (this.#suspended) return undefined;
        logger.error({ operation: record.id, code: asLoopwrightError(error).code }, 'an ending could not be stored');
        if (!failed) {
          current = asLoopwrightError(error);
          if (record.kind === 'training') this.#incarnation = undefined;
          continue;
        }
        await new Promise<void>((resolve) => {
          tools.clock.after(retryWriteMs, resolve);
        });
        if (this.#suspended || this.#ended) return undefined;
      }
    }
  }

  /** What the failure of an operation means for the session. */
  #failureEffects(record: OperationRecord, code?: ErrorCode): SessionEffects {
    if (record.kind !== 'training') return {};
    const turn = { nextSequenceNumber: record.sequenceNumber + 1 };
    if (code === 'gradient_incomplete') return { ...turn, gradientIncomplete: false };
    const marks = record.type === 'forward-backward' && this.#session.policy.incompleteGradient === 'fail-next-step';
    return marks ? { ...turn, gradientIncomplete: true } : turn;
  }

  /** Blocks the session when later numbers wait for one that is missing. */
  async #noteGap(): Promise<void> {
    if (this.#training.size === 0 || this.#blocked) return;
    const missing = this.#next;
    const waiting = this.#training.size;
    this.#blocked = true;
    const error = new LoopwrightError({
      code: 'sequence_conflict',
      message: `sequence number ${missing} is missing; ${waiting} later operation${waiting === 1 ? ' waits' : 's wait'} for it`,
      details: {
        field: 'sequenceNumber',
        expected: String(missing),
        remedy: `submit the operation with number ${missing}`,
      },
    });
    const { sessions, tools } = this.#options;
    await sessions.change(this.#session.id, { from: ['Running', 'Blocked'], to: 'Blocked', error });
    const { gapTimeoutMs } = this.#session.policy;
    if (gapTimeoutMs === null || this.#ended || !this.#blocked) return;
    this.#cancelGapTimer = tools.clock.after(gapTimeoutMs, () => {
      const late = `sequence number ${missing} did not arrive within ${Math.round(gapTimeoutMs / 1000)} s`;
      this.#fail(new LoopwrightError({ code: 'timeout', message: late })).catch(() => {}); // logged inside
    });
  }

  async #unblock(): Promise<void> {
    if (!this.#blocked) return;
    this.#blocked = false;
    this.#cancelGapTimer();
    await this.#options.sessions.change(this.#session.id, { from: ['Blocked'], to: 'Running', error: null });
  }

  async #fail(error: LoopwrightError): Promise<void> {
    if (this.#ended || this.#suspended) return;
    this.#options.logger.error({ session: this.#session.name, code: error.code }, 'session failed');
    await this.end('Failed', error);
  }

  async #end(to: 'Stopped' | 'Expired' | 'Failed', error?: LoopwrightError): Promise<void> {
    const { sessions, tools, engines, logger } = this.#options;
    this.#ended = true;
    this.#cancelGapTimer();
    await this.#giveUpRunning(to === 'Failed' ? 'the session failed' : 'the session was stopped');
    try {
      for (const record of await tools.log.ofSession(this.#session.id, { open: true })) {
        const ran = this.#running.get(record.id);
        const skipped = record.kind === 'training' && ran === undefined;
        const ending: Ending = {
          status: skipped ? 'Skipped' : 'Failed',
          error: ran === undefined ? notRun(to) : cancelled('the session ended while the operation ran'),
        };
        await tools.log.finish({
          session: this.#session,
          record,
          ending,
          startedAtMs: ran?.startedAtMs ?? null,
          effects: {},
        });
      }
      if (this.#incarnation !== undefined) {
        const engine = await engines.engine(this.#session.spec.baseModel);
        await engine.closeSession(this.#session.name);
      }
    } catch (cause) {
      logger.error(
        { session: this.#session.name, code: asLoopwrightError(cause).code },
        'the end of a session left something',
      );
    }
    const from = ['Created', 'Scheduled', 'Running', 'Blocked', 'Stopping'] as const;
    await sessions.change(this.#session.id, { from, to, ...(error === undefined ? {} : { error }) });
  }

  async #giveUpRunning(why: string): Promise<void> {
    const running = [...this.#running.values()];
    if (running.length === 0) return;
    for (const { abort } of running) abort.abort(cancelled(why));
    let cancelTimer: () => void = () => {};
    const patience = new Promise<void>((resolve) => {
      cancelTimer = this.#options.tools.clock.after(this.#options.stopGraceMs, resolve);
    });
    await Promise.race([Promise.all(running.map(({ finished }) => finished)), patience]);
    cancelTimer();
  }

  #runningOf(kind: OperationRecord['kind']): number {
    return [...this.#running.values()].filter(({ record }) => record.kind === kind).length;
  }

  #openTraining(): Map<number, { sequenceNumber: number; type: TrainingRecord['type']; startedAtMs?: number }> {
    const open = [...this.#training.values()].filter(({ endedAtMs }) => endedAtMs === null);
    return new Map(
      open.map(({ id, sequenceNumber, type }) => {
        const startedAtMs = this.#running.get(id)?.startedAtMs;
        return [sequenceNumber, { sequenceNumber, type, ...(startedAtMs === undefined ? {} : { startedAtMs }) }];
      }),
    );
  }
}

function cancelled(message: string): LoopwrightError {
  return new LoopwrightError({ code: 'cancelled', message });
}

function notRun(to: 'Stopped' | 'Expired' | 'Failed'): LoopwrightError {
  const message = `the session ended (${to}) before the operation ran`;
  return new LoopwrightError({ code: 'operation_skipped', message });
}

function gradientIncomplete(): LoopwrightError {
  return new LoopwrightError({
    code: 'gradient_incomplete',
    message:
      'a forwardBackward before this step failed or was cancelled, so its gradient was incomplete; nothing was changed and the gradient is cleared: repeat the passes, then the step',
  });
}
