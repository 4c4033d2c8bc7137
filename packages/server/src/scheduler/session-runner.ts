/**
 * Drives one session: training operations strictly in order and one at a time, sampling operations beside them; what the end of an
 * engine took down is run again on its successor.
 */
import type { Engine } from '@loopwright/engine';
import { asLoopwrightError, type LoopwrightError, type VersionId } from '@loopwright/protocol';
import type { Logger } from 'pino';
import type { EngineHost, EngineNeed } from '../engines/engine-host.js';
import type { Ending, SessionEffects } from '../operations/operation-log.js';
import type { OperationRecord, SamplingRecord, TrainingRecord } from '../operations/operation-record.js';
import type { SessionRecord } from '../sessions/session-record.js';
import type { SessionRepository } from '../sessions/session-repository.js';
import type { SessionLimits } from '../sessions/session-service.js';
import { SnapshotKeeper } from '../snapshots/snapshot-keeper.js';
import { type Attempt, attempt, failureOf } from './attempt.js';
import { cancelled, failureEffects, gradientIncomplete, type SessionEnd } from './endings.js';
import { EngineResidence } from './engine-residence.js';
import { type ExecutionTools, executeSampling, executeTraining } from './execute.js';
import { GapWatch } from './gap-watch.js';
import { openNeighbours, type Progress, trainingWait } from './progress.js';
import { redoKind } from './rebuild-plan.js';
import { type Running, RunningOperations, type TokenListener } from './running-operations.js';
import type { TraceEntry } from './trace.js';
import { type Outcome, skipOpen, writeEnding } from './write-ending.js';

export interface RunnerOptions {
  readonly session: SessionRecord;
  readonly tools: ExecutionTools;
  readonly sessions: SessionRepository;
  readonly engines: EngineHost;
  readonly logger: Logger;
  readonly limits: Pick<SessionLimits, 'samplingConcurrency' | 'stopGraceMs' | 'maxRedoMs'>;
}

export class SessionRunner {
  readonly #session: SessionRecord;
  readonly #options: RunnerOptions;
  readonly #running: RunningOperations;
  readonly #gap: GapWatch;
  readonly #residence: EngineResidence;
  readonly #snapshots: SnapshotKeeper;
  /** Accepted, and their turn not over yet: waiting, running, or cancelled while they waited. */
  readonly #training = new Map<number, TrainingRecord>();
  readonly #spent = new Set<number>();
  readonly #sampling: SamplingRecord[] = [];
  /** Of these nothing may be written. */
  readonly #retracted = new WeakSet<OperationRecord>();
  #next: number;
  #step: number;
  #gradientIncomplete: boolean;
  #parent: VersionId | null = null;
  #phase: 'loading' | 'rebuilding' | 'ready' = 'loading';
  #turning = false;
  #ended = false;
  #suspended = false;
  #ending: Promise<void> | undefined;
  #hasEnded = false;
  #starting: Promise<void> | undefined;

  constructor(options: RunnerOptions) {
    const { session, sessions, engines, tools, logger, limits } = options;
    const { clock } = tools;
    this.#options = options;
    this.#session = session;
    this.#next = session.nextSequenceNumber;
    this.#step = session.step;
    this.#gradientIncomplete = session.gradientIncomplete;
    this.#running = new RunningOperations(clock);
    const onMade = (replayed: readonly TrainingRecord[]) => this.#snapshots.rebuilt(replayed);
    this.#residence = new EngineResidence({ session, sessions, engines, tools, logger, onMade });
    const { maxRedoMs } = limits;
    const [residence, store] = [this.#residence, tools.snapshots];
    this.#snapshots = new SnapshotKeeper({ session, residence, store, logger, maxRedoMs });
    const onTimeout = (error: LoopwrightError) => void this.#fail(error);
    this.#gap = new GapWatch({ session, sessions, clock, onTimeout });
  }

  /** Takes up what the log holds, makes the session in the engine, and goes on. Resolves when it runs or has failed. */
  start(): Promise<void> {
    this.#starting ??= this.#start();
    return this.#starting;
  }

  /** Hands over an accepted operation; a listener is told the tokens of a sampling one. */
  add(record: OperationRecord, listener?: TokenListener): void {
    if (this.#isOver() || record.endedAtMs !== null) return;
    if (listener !== undefined) this.#running.listen(record, listener);
    if (record.kind === 'training') {
      const { sequenceNumber } = record;
      if (sequenceNumber >= this.#next && !this.#training.has(sequenceNumber))
        this.#training.set(sequenceNumber, record);
      this.#takeTurns();
    } else {
      this.#addSampling(record);
      this.#fillSampling();
    }
  }

  /** Gives up a sampling operation that was handed over before its acceptance and is not accepted: nothing of it is written. */
  retract(record: OperationRecord): void {
    this.#retracted.add(record);
    this.#running.get(record.id)?.abort.abort(cancelled('the operation was not accepted'));
    this.#unqueue(record);
  }

  /** A refused submission used this number up. */
  spend(sequenceNumber: number): void {
    this.#spent.add(sequenceNumber);
    this.#takeTurns();
  }

  /** Operations that have not ended. */
  get openCount(): number {
    return this.#training.size + this.#sampling.length + this.#running.count('sampling');
  }

  /** Nothing is left to do for it. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** The engine that must stay loaded: of a session that has a state there, or of one that only samples while it has work. */
  get engineNeed(): EngineNeed | undefined {
    const isNeeded = !this.#hasEnded && (this.#session.spec.training.type !== 'none' || this.openCount > 0);
    return isNeeded ? this.#residence.need : undefined;
  }

  /** What ran when. */
  trace(): readonly TraceEntry[] {
    return this.#running.trace.entries();
  }

  /** Whether an engine works on it; not while its session is being rebuilt. */
  isRunning(id: string): boolean {
    const running = this.#running.get(id);
    return running !== undefined && (running.record.kind === 'sampling' || this.#phase === 'ready');
  }

  /** Where an operation stands that has not ended. */
  progress(record: OperationRecord): Progress {
    const running = this.#running.get(record.id);
    if (running !== undefined && this.isRunning(record.id)) {
      const { startedAtMs, done } = running;
      return { state: 'running', sinceMs: startedAtMs, position: 0, ...(done === undefined ? {} : { done }) };
    }
    const queued = { state: 'queued', sinceMs: record.createdAtMs } as const;
    const wait = record.kind === 'sampling' ? this.#samplingWait(record) : this.#trainingWait(record);
    if (this.#phase === 'loading') return { ...queued, ...wait, waitingFor: 'the base model to load' };
    if (this.#phase === 'rebuilding' && record.kind === 'training') {
      return { ...queued, ...wait, waitingFor: 'the session to be rebuilt after a restart' };
    }
    return { ...queued, ...wait };
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
    if (record.kind === 'sampling') {
      this.#unqueue(record);
    } else if (this.#training.has(record.sequenceNumber)) {
      // Its turn still comes: a pass that was given up must be missed by the step behind it.
      const ended: TrainingRecord = { ...record, status: 'Failed', endedAtMs: this.#options.tools.clock.now() };
      this.#training.set(record.sequenceNumber, ended);
    }
    const ending: Ending = { status: 'Failed', error: cancelled('the caller cancelled the operation while it waited') };
    try {
      await this.#options.tools.log.finish({ session: this.#session, record, ending, startedAtMs: null, effects: {} });
    } catch (error) {
      if (record.kind === 'sampling') this.add(record);
      else if (this.#training.has(record.sequenceNumber)) this.#training.set(record.sequenceNumber, record);
      throw error;
    }
  }

  /** Ends the session: running operations are cancelled, waiting ones skipped, the engine's memory is freed. */
  end(to: SessionEnd, error?: LoopwrightError): Promise<void> {
    this.#ending ??= this.#end(to, error);
    return this.#ending;
  }

  /** Lets go without a trace in the log, when the server closes: what has not ended is run again by the next one. */
  async suspend(): Promise<void> {
    this.#suspended = true;
    this.#gap.stop();
    await this.#running.giveUp('the server closes', this.#options.limits.stopGraceMs);
    await this.#snapshots.stop();
    await this.#ending?.catch(() => {}); // whoever ends it is told
  }

  async #start(): Promise<void> {
    const { sessions } = this.#options;
    const { id, status } = this.#session;
    try {
      const hasHistory = await this.#readLog();
      this.#phase = hasHistory ? 'rebuilding' : 'loading';
      await sessions.change(id, { from: ['Created'], to: 'Scheduled' });
      if (status === 'Blocked') await sessions.change(id, { from: ['Blocked'], to: 'Running', error: null });
      const plan = await this.#residence.enter(this.#next);
      if (this.#isOver()) return;
      await sessions.change(id, { from: ['Scheduled'], to: 'Running', ...(plan === undefined ? {} : { plan }) });
      this.#phase = 'ready';
      this.#takeTurns();
      this.#fillSampling();
    } catch (cause) {
      await this.#fail(asLoopwrightError(cause, 'engine_failed'));
    }
  }

  /** Takes up what an earlier process left. False for a session without any training operation. */
  async #readLog(): Promise<boolean> {
    const { log } = this.#options.tools;
    const { id, nextSequenceNumber } = this.#session;
    for (const number of await log.spentNumbers(id)) this.#spent.add(number);
    const records = await log.training(id);
    const loads = records.filter((record) => record.type === 'load-state' && record.status === 'Completed');
    this.#parent = loads.at(-1)?.readsVersion ?? null;
    for (const record of records) {
      if (record.sequenceNumber >= nextSequenceNumber) this.#training.set(record.sequenceNumber, record);
    }
    for (const record of await log.ofSession(id, { open: true })) {
      if (record.kind === 'sampling') this.#addSampling(record);
    }
    return records.length > 0;
  }

  /** Once: an operation may be handed over while the log is read. */
  #addSampling(record: SamplingRecord): void {
    const isKnown = this.#running.get(record.id) !== undefined || this.#sampling.some(({ id }) => id === record.id);
    if (!isKnown) this.#sampling.push(record);
  }

  #unqueue(record: OperationRecord): void {
    const index = this.#sampling.findIndex(({ id }) => id === record.id);
    if (index >= 0) this.#sampling.splice(index, 1);
  }

  #takeTurns(): void {
    if (this.#turning || this.#phase !== 'ready' || this.#isOver()) return;
    this.#turning = true;
    this.#turns().catch(async (error: unknown) => {
      this.#turning = false;
      await this.#fail(asLoopwrightError(error));
    });
  }

  async #turns(): Promise<void> {
    while (!this.#isOver()) {
      while (this.#spent.has(this.#next)) this.#next += 1;
      const record = this.#training.get(this.#next);
      if (record !== undefined) {
        await this.#gap.close();
        await this.#turn(record);
        continue;
      }
      if (this.#training.size > 0) await this.#gap.open(this.#next, this.#training.size);
      else await this.#gap.close();
      if (!this.#training.has(this.#next) && !this.#spent.has(this.#next)) break;
    }
    this.#turning = false;
  }

  /** The turn of one training operation, from its start to its ending in the log. */
  async #turn(record: TrainingRecord): Promise<void> {
    if (record.endedAtMs !== null) {
      const effects = failureEffects(record, this.#session.policy);
      await this.#options.tools.log.apply(this.#session.id, effects);
      this.#passTurn(record, effects);
      return;
    }
    const running = this.#running.begin(record);
    try {
      const outcome = await this.#attemptTraining(record, running);
      const effects = outcome === undefined ? undefined : await this.#write(running, outcome);
      if (outcome === undefined || effects === undefined) return;
      this.#passTurn(record, effects);
      await this.#snapshots.after(record.type, redoKind(record.type, outcome), running.engineMs ?? 0, {
        nextSequenceNumber: this.#next,
        gradientIncomplete: this.#gradientIncomplete,
      });
    } finally {
      running.close();
    }
  }

  /** Undefined when the session was let go meanwhile. Rejects when the session can't be made in an engine. */
  async #attemptTraining(record: TrainingRecord, running: Running): Promise<Outcome | undefined> {
    const { tools } = this.#options;
    const operation = await tools.log.operation(record);
    return this.#attempt(running, {
      engine: () => this.#engineWithSession(),
      work: async (engine) => {
        if (record.type === 'optim-step' && this.#gradientIncomplete) {
          await engine.clearGradient(this.#session.name);
          return gradientIncomplete();
        }
        return executeTraining(tools, {
          engine,
          session: this.#session,
          record,
          operation: operation as Parameters<typeof executeTraining>[1]['operation'], // true: a training record holds a training operation
          lineage: { step: this.#step, parent: this.#parent },
          options: running.callOptions,
        });
      },
    });
  }

  /** The engine, with the session in it. */
  async #engineWithSession(): Promise<Engine> {
    const engine = await this.#residence.engine();
    if (this.#residence.isIn(engine)) return engine;
    this.#phase = 'rebuilding';
    await this.#residence.enter(this.#next);
    this.#phase = 'ready';
    return this.#residence.engine();
  }

  #passTurn(record: TrainingRecord, effects: SessionEffects): void {
    this.#training.delete(record.sequenceNumber);
    this.#next = record.sequenceNumber + 1;
    this.#step = effects.step ?? this.#step;
    this.#gradientIncomplete = effects.gradientIncomplete ?? this.#gradientIncomplete;
    this.#parent = effects.parent ?? this.#parent;
  }

  #fillSampling(): void {
    if (this.#phase === 'loading') return;
    while (!this.#isOver() && this.#running.count('sampling') < this.#options.limits.samplingConcurrency) {
      const record = this.#sampling.shift();
      if (record === undefined) return;
      const running = this.#running.begin(record);
      this.#sample(record, running)
        .catch((error: unknown) => {
          const { code } = asLoopwrightError(error);
          this.#options.logger.error({ operation: record.id, code }, 'a sampling operation was lost');
        })
        .finally(() => {
          running.close();
          this.#fillSampling();
        });
    }
  }

  async #sample(record: SamplingRecord, running: Running): Promise<void> {
    const outcome = await this.#attemptSampling(record, running);
    if (outcome !== undefined && !this.#retracted.has(record)) await this.#write(running, outcome);
  }

  /** Undefined when the session was let go meanwhile. */
  async #attemptSampling(record: SamplingRecord, running: Running): Promise<Outcome | undefined> {
    const { tools } = this.#options;
    try {
      const operation = await tools.log.operation(record);
      return await this.#attempt(running, {
        engine: () => this.#residence.engine(),
        work: (engine) =>
          executeSampling(tools, {
            engine,
            session: this.#session,
            record,
            operation: operation as Parameters<typeof executeSampling>[1]['operation'], // true: a sampling record holds a sampling operation
            options: running.callOptions,
          }),
      });
    } catch (error) {
      return failureOf(error, running, this.#suspended);
    }
  }

  #attempt(running: Running, { engine, work }: Pick<Attempt, 'engine' | 'work'>): Promise<Outcome | undefined> {
    return attempt({ running, residence: this.#residence, isSuspended: () => this.#suspended, engine, work });
  }

  #write({ record, startedAtMs, engineMs, told }: Running, outcome: Outcome): Promise<SessionEffects | undefined> {
    const { tools, logger } = this.#options;
    const { log, clock } = tools;
    const isOver = () => this.#isOver() || this.#retracted.has(record);
    const onLostResult = () => {
      if (record.kind === 'training') this.#residence.distrust();
    };
    const session = this.#session;
    return writeEnding({
      session,
      record,
      startedAtMs,
      engineMs,
      told: told(),
      outcome,
      log,
      clock,
      logger,
      isOver,
      onLostResult,
    });
  }

  /** Never rejects. */
  async #fail(error: LoopwrightError): Promise<void> {
    if (this.#isOver()) return;
    const session = this.#session.name;
    this.#options.logger.error({ session, code: error.code }, 'session failed');
    try {
      await this.end('Failed', error);
    } catch (cause) {
      this.#options.logger.error({ session, code: asLoopwrightError(cause).code }, 'the failure was not written down');
    }
  }

  async #end(to: SessionEnd, error?: LoopwrightError): Promise<void> {
    const { sessions, tools, logger, limits } = this.#options;
    const { id, name } = this.#session;
    this.#ended = true;
    this.#residence.giveUp();
    this.#gap.stop();
    // Nothing is accepted any more, so that what is skipped below is all that is open.
    const failure = error === undefined ? {} : { error };
    await sessions.change(id, { from: ['Created', 'Scheduled', 'Running', 'Blocked'], to: 'Stopping', ...failure });
    await this.#running.giveUp(to === 'Failed' ? 'the session failed' : 'the session was stopped', limits.stopGraceMs);
    await this.#snapshots.stop();
    try {
      await skipOpen({ session: this.#session, log: tools.log, running: this.#running, to });
      await this.#residence.leave();
      await tools.snapshots.removeAll(id);
    } catch (cause) {
      logger.error({ session: name, code: asLoopwrightError(cause).code }, 'the end of a session left something');
    }
    await sessions.change(id, { from: ['Stopping'], to, ...failure });
    this.#hasEnded = true;
  }

  #isOver(): boolean {
    return this.#ended || this.#suspended;
  }

  #samplingWait({ id }: SamplingRecord): { waitingFor: string; position: number } {
    const index = this.#sampling.findIndex((record) => record.id === id);
    const running = this.#running.count('sampling');
    return { waitingFor: `a free place: ${running} sampling operations run`, position: Math.max(0, index) };
  }

  #trainingWait({ sequenceNumber }: TrainingRecord): { waitingFor: string; position: number } {
    return trainingWait(sequenceNumber, {
      next: this.#next,
      open: openNeighbours([...this.#training.values()], (id) => this.#running.get(id)?.startedAtMs),
      settled: (number) => this.#spent.has(number) || this.#training.has(number),
      nowMs: this.#options.tools.clock.now(),
    });
  }
}
