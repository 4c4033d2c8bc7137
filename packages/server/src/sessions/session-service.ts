/** The session service: what every wire calls. Knows states, order and money; knows no wire and no engine's insides. */
import { randomUUID } from 'node:crypto';
import type { OnToken } from '@loopwright/engine';
import {
  complaint,
  LoopwrightError,
  type Operation,
  type SessionStatus,
  type SessionTraining,
  type TokenUsage,
  type TrainingOperation,
} from '@loopwright/protocol';
import type { UsageLine, UsageQuery } from '@loopwright/wires/loopwright';
import type { Logger } from 'pino';
import type { EngineHost, EngineNeed } from '../engines/engine-host.js';
import type { ModelRegistry } from '../models/model-registry.js';
import { requestHash, type Submission } from '../operations/earlier-submission.js';
import { checkAgainstModel } from '../operations/model-limits.js';
import type { Accepted, OnDraft } from '../operations/operation-log.js';
import type { OperationRecord } from '../operations/operation-record.js';
import { type DrawSeed, resolveSampling, resolveTraining, type SamplingRequest } from '../operations/resolve.js';
import type { ExecutionTools } from '../scheduler/execute.js';
import { SessionRunner } from '../scheduler/session-runner.js';
import type { TraceEntry } from '../scheduler/trace.js';
import type { Database } from '../store/open-database.js';
import { sessionUsage } from '../usage/ledger.js';
import { usageSummary } from '../usage/summary.js';
import { whyExpired } from './expiry.js';
import type { Hold, OperationView } from './operation-view.js';
import { checkTraining, invalidTransition, promptLength, usesNumberUp } from './session-checks.js';
import { deletableStatuses, isServing, liveStatuses, type SessionRecord, type WirePolicy } from './session-record.js';
import type { Page, SessionFilter, SessionRepository } from './session-repository.js';

export interface SessionLimits {
  readonly maxLiveSessions: number;
  readonly samplingConcurrency: number;
  /** Operations of a session that have not ended, at most. */
  readonly maxOpenOperations: number;
  readonly stopGraceMs: number;
  /** Engine time that is done again after a crash, at most; null takes no snapshots. */
  readonly maxRedoMs: number | null;
  /** A session without any operation for so long expires; null lets it live. */
  readonly idleTimeoutMs: number | null;
  /** A session expires so long after its creation, whatever it does; null lets it live. */
  readonly lifetimeMs: number | null;
}

export interface SessionServiceOptions {
  readonly workspaceId: string;
  readonly database: Database;
  readonly sessions: SessionRepository;
  readonly tools: ExecutionTools;
  readonly models: ModelRegistry;
  readonly engines: EngineHost;
  readonly logger: Logger;
  readonly limits: SessionLimits;
  readonly drawSeed: DrawSeed;
}

export interface SessionRequest {
  readonly name: string;
  readonly baseModel: string;
  readonly training: SessionTraining;
  readonly seed?: number;
  readonly groupName: string;
  readonly echo: SessionRecord['echo'];
  readonly policy: WirePolicy;
}

export class SessionService {
  readonly #options: SessionServiceOptions;
  readonly #runners = new Map<string, SessionRunner>();

  constructor(options: SessionServiceOptions) {
    this.#options = options;
  }

  /**
   * Creates a session and returns at once; the model is loaded and the session made in the background.
   * @throws `unknown_model`, `model_invalid`, `invalid_argument`, `session_exists`, `quota_exceeded`
   */
  async create({ name, baseModel, training, seed, ...rest }: SessionRequest): Promise<SessionRecord> {
    const { sessions, models, drawSeed, workspaceId, limits } = this.#options;
    checkTraining(training);
    await models.card(baseModel);
    const id = randomUUID();
    const spec = { name, baseModel, training, seed: seed ?? drawSeed() };
    await sessions.insert({ workspaceId, id, name, spec, ...rest }, { maxLive: limits.maxLiveSessions });
    const session = await sessions.byId(id);
    this.#run(session);
    return session;
  }

  /**
   * The session of that name that only samples, made where it is missing or has ended. It holds no memory of the engine's and no place in the
   * quota, and takes sampling operations at once.
   * @throws `unknown_model`, `model_invalid`
   */
  async samplingSession(request: Omit<SessionRequest, 'training' | 'seed'>): Promise<SessionRecord> {
    const { sessions, workspaceId } = this.#options;
    const known = await sessions.find(workspaceId, request.name);
    if (known !== undefined && !deletableStatuses.includes(known.status)) {
      await this.#whenItStarted(known); // another call may be making it
      return known;
    }
    if (known !== undefined) await this.delete(known.name);
    const made = await this.create({ ...request, training: { type: 'none' }, seed: 0 }).catch((error: unknown) => {
      if (LoopwrightError.isInstance(error) && error.code === 'session_exists') return this.session(request.name);
      throw error;
    });
    await this.#runnerOf(made).start();
    return made;
  }

  /** Resolves when the session runs, or has ended, or is let go; says which state it is in then. @throws `unknown_session` */
  async whenStarted(name: string): Promise<SessionRecord> {
    await this.#whenItStarted(await this.session(name));
    return this.session(name);
  }

  async #whenItStarted(session: SessionRecord): Promise<void> {
    if (session.status === 'Created' || session.status === 'Scheduled') await this.#runnerOf(session).start();
  }

  find(name: string): Promise<SessionRecord | undefined> {
    return this.#options.sessions.find(this.#options.workspaceId, name);
  }

  /** The training operation that was accepted under a number. @throws `unknown_session` */
  async training(name: string, sequenceNumber: number): Promise<OperationRecord | undefined> {
    return this.#options.tools.log.ofNumber((await this.session(name)).id, sequenceNumber);
  }

  /** @throws `unknown_session` */
  session(name: string): Promise<SessionRecord> {
    return this.#options.sessions.byName(this.#options.workspaceId, name);
  }

  usage(session: SessionRecord): Promise<TokenUsage> {
    return sessionUsage(this.#options.database, session.id);
  }

  /** What was used in a time, summed up. */
  usageSummary(query: UsageQuery): Promise<UsageLine[]> {
    return usageSummary(this.#options.database, this.#options.workspaceId, query);
  }

  list(filter: SessionFilter, page: { readonly limit: number; readonly after?: string }): Promise<Page<SessionRecord>> {
    return this.#options.sessions.list(this.#options.workspaceId, filter, page);
  }

  /** Stops a session: it is Stopping when this returns and Stopped soon after. @throws `unknown_session`, `invalid_transition` */
  async stop(name: string): Promise<void> {
    const { sessions } = this.#options;
    const session = await this.session(name);
    const from: readonly SessionStatus[] = ['Created', 'Scheduled', 'Running', 'Blocked'];
    if (!(await sessions.change(session.id, { from, to: 'Stopping', error: null }))) {
      throw invalidTransition((await this.session(name)).status, 'Stopping');
    }
    this.#background(this.#runnerOf(session).end('Stopped'), name);
  }

  /** Stops a session, if it is not ending already, and resolves when it has ended. @throws `unknown_session` */
  async stopped(name: string): Promise<void> {
    const session = await this.session(name);
    if (!liveStatuses.includes(session.status)) return;
    await this.#options.sessions.change(session.id, { from: liveStatuses, to: 'Stopping', error: null });
    await this.#runnerOf(session).end('Stopped');
  }

  /** Deletes an ended session with its operations; its versions stay. @throws `unknown_session`, `invalid_transition` */
  async delete(name: string): Promise<void> {
    const { sessions } = this.#options;
    const session = await this.session(name);
    if (!(await sessions.change(session.id, { from: deletableStatuses, to: 'Deleting' }))) {
      throw invalidTransition((await this.session(name)).status, 'Deleting');
    }
    await this.#remove(session);
  }

  /**
   * Accepts a training operation. Returns as soon as it is durable.
   * @throws what the log, the registry and the model's limits refuse; a refusal of what was submitted uses the number up
   */
  async submitTraining(
    name: string,
    submission: Submission & { readonly sequenceNumber: number },
    operation: TrainingOperation,
  ): Promise<OperationRecord> {
    const { models, tools } = this.#options;
    const session = await this.session(name);
    this.#checkOpen(session);
    try {
      checkAgainstModel(operation, await models.card(session.spec.baseModel));
      const resolved = await resolveTraining(session, operation, tools.registry);
      const { record } = await tools.log.accept({ session, ...resolved, ...submission });
      await tools.log.durable();
      this.#runners.get(session.id)?.add(record);
      return record;
    } catch (error) {
      if (usesNumberUp(error)) await this.spend(name, submission.sequenceNumber);
      throw error;
    }
  }

  /** Counts the number of a refused submission as used, where the session is at work. @throws `unknown_session` */
  async spend(name: string, sequenceNumber: number): Promise<void> {
    const session = await this.session(name);
    if (session.status !== 'Running' && session.status !== 'Blocked') return;
    if (await this.#options.tools.log.spend(session, sequenceNumber))
      this.#runners.get(session.id)?.spend(sequenceNumber);
  }

  /**
   * Accepts a sampling operation, or finds the one of the same token. Returns as soon as it is durable. One that is listened to and then
   * cancelled is charged for what it told.
   * @throws what the log, the registry and the model's limits refuse
   */
  async submitSampling(
    name: string,
    request: SamplingRequest,
    { onToken, clientToken }: { readonly onToken?: OnToken; readonly clientToken?: string } = {},
  ): Promise<OperationRecord> {
    const { record, repeated } = await this.#acceptSampling(name, request, { clientToken });
    await this.#options.tools.log.durable();
    const listener = onToken === undefined ? undefined : { onToken, prefillTokens: promptLength(request) };
    if (!repeated) this.#runners.get(record.sessionId)?.add(record, listener);
    return record;
  }

  /**
   * As {@link submitSampling}, and how the operation stands after it has ended or the time to wait is over. The work begins before the
   * acceptance is written; this returns after it is on the disk.
   */
  async sample(
    name: string,
    request: SamplingRequest,
    { clientToken, waitMs, signal }: Hold & { readonly clientToken?: string },
  ): Promise<OperationView> {
    return this.viewOf(await this.#acceptAtWork(name, request, clientToken), { waitMs, ...(signal && { signal }) });
  }

  /** Accepts an operation that is at work already; one that was accepted before, or is refused in the end, is given up. */
  async #acceptAtWork(
    name: string,
    request: SamplingRequest,
    clientToken: string | undefined,
  ): Promise<OperationRecord> {
    let giveUp = () => {};
    const onDraft = (draft: OperationRecord) => {
      const runner = this.#runners.get(draft.sessionId);
      runner?.add(draft);
      giveUp = () => runner?.retract(draft);
    };
    try {
      const { record, repeated } = await this.#acceptSampling(name, request, { clientToken, onDraft });
      if (repeated) giveUp();
      return record;
    } catch (error) {
      giveUp();
      throw error;
    }
  }

  async #acceptSampling(
    name: string,
    request: SamplingRequest,
    { clientToken, onDraft }: { readonly clientToken: string | undefined; readonly onDraft?: OnDraft },
  ): Promise<Accepted> {
    const { models, tools, drawSeed } = this.#options;
    const session = await this.session(name);
    this.#checkOpen(session);
    const resolved = await resolveSampling(session, request, { registry: tools.registry, drawSeed });
    checkAgainstModel(resolved.operation, await models.card(session.spec.baseModel));
    const submission = clientToken === undefined ? {} : { clientToken, requestHash: requestHash(request) };
    return tools.log.accept({ session, ...resolved, ...submission }, onDraft);
  }

  /** An operation, after it has ended or `waitMs` have gone by. @throws `unknown_session`, `unknown_operation` */
  async operation(
    name: string,
    id: string,
    { kind, ...hold }: Hold & { readonly kind: OperationRecord['kind'] },
  ): Promise<OperationView> {
    const session = await this.session(name);
    return this.viewOf(await this.#options.tools.log.get(session.id, id, kind), hold);
  }

  /** As {@link operation}, by the id alone. @throws `unknown_operation` */
  async operationById(id: string, hold: Hold): Promise<OperationView> {
    return this.viewOf(await this.#options.tools.log.find(this.#options.workspaceId, id), hold);
  }

  /** How an accepted operation stands, after it has ended or the time to wait is over. */
  async viewOf(record: OperationRecord, { waitMs, signal }: Hold): Promise<OperationView> {
    const { log } = this.#options.tools;
    const ended = await log.whenEnded(record, waitMs, signal);
    if (ended === undefined || ended === record) await log.durable(); // who is woken is woken after it
    return this.#view(ended ?? (await log.get(record.sessionId, record.id)));
  }

  /** The session of an operation. @throws `unknown_session` */
  async nameOf(record: OperationRecord): Promise<string> {
    return (await this.#options.sessions.byId(record.sessionId)).name;
  }

  /** What was submitted. */
  payload(record: OperationRecord): Promise<Operation> {
    return this.#options.tools.log.operation(record);
  }

  /** Resolves when nothing that was accepted is open any more, or after `waitMs` for each that is. @throws `unknown_session` */
  async settled(name: string, waitMs: number): Promise<void> {
    const { log } = this.#options.tools;
    const session = await this.session(name);
    for (const record of await log.ofSession(session.id, { open: true })) await log.whenEnded(record, waitMs);
  }

  /** Cancels an operation where that is possible and returns how it stands then. @throws `unknown_session`, `unknown_operation` */
  async cancel(name: string, id: string, kind: OperationRecord['kind']): Promise<OperationView> {
    const { log } = this.#options.tools;
    const session = await this.session(name);
    const record = await log.get(session.id, id, kind);
    if (record.endedAtMs === null) await this.#runners.get(session.id)?.cancel(record);
    return this.#view(await log.get(session.id, id, kind));
  }

  /** What ran when, for the sessions of this process; for a minute or so after they ended. @throws `unknown_session` */
  async trace(name: string): Promise<readonly TraceEntry[]> {
    const session = await this.session(name);
    return this.#runners.get(session.id)?.trace() ?? [];
  }

  /** Takes up the sessions that an earlier process left: live ones go on unless they are to stop, half-ended ones are ended. */
  async recover(live: 'resume' | 'stop' = 'resume'): Promise<void> {
    const { sessions, tools } = this.#options;
    await tools.snapshots.tidy();
    for (const session of await sessions.withStatus(liveStatuses)) {
      if (isServing(session)) {
        await sessions.change(session.id, { from: liveStatuses, to: 'Deleting' });
        continue;
      }
      if (live === 'stop') await sessions.change(session.id, { from: liveStatuses, to: 'Stopping', error: null });
      const { error } = session;
      if (session.status === 'Stopping' && error !== null)
        this.#background(this.#runnerOf(session).end('Failed', error), session.name);
      else if (live === 'stop' || session.status === 'Stopping')
        this.#background(this.#runnerOf(session).end('Stopped'), session.name);
      else this.#run(session);
    }
    for (const session of await sessions.withStatus(['Deleting'])) await this.#remove(session);
  }

  /** Expires the sessions that have been idle, or have lived, for too long, and lets go of what was kept in memory of those that ended. */
  async expire(): Promise<void> {
    for (const [id, runner] of this.#runners) if (runner.hasEnded) this.#runners.delete(id);
    const { sessions, limits, tools } = this.#options;
    for (const session of await sessions.withStatus(['Running', 'Blocked'])) {
      const hasWork = async () => (await tools.log.ofSession(session.id, { open: true })).length > 0;
      const reason = await whyExpired(session, limits, tools.clock.now(), hasWork);
      if (reason === undefined) continue;
      await sessions.change(session.id, { from: ['Running', 'Blocked'], to: 'Stopping', error: null });
      await this.#runnerOf(session).end('Expired', reason);
      if (isServing(session)) await this.delete(session.name);
    }
  }

  /** What keeps engines loaded. */
  engineNeeds(): EngineNeed[] {
    return [...this.#runners.values()].map(({ engineNeed }) => engineNeed).filter((need) => need !== undefined);
  }

  /** Lets every session go; the next process takes them up. */
  async close(): Promise<void> {
    this.#options.tools.log.wakeAll();
    await Promise.all([...this.#runners.values()].map((runner) => runner.suspend()));
  }

  async #view(record: OperationRecord): Promise<OperationView> {
    const { status } = record;
    switch (status) {
      case 'Completed':
        return { status, record, done: await this.#options.tools.log.result(record) };
      case 'Failed':
      case 'Skipped':
        return {
          status,
          record,
          error: record.error ?? new LoopwrightError({ code: 'operation_failed', message: status }),
        };
      case 'Pending':
      case 'InProgress': {
        const runner = this.#runnerOf(await this.#options.sessions.byId(record.sessionId));
        return {
          status: runner.isRunning(record.id) ? 'InProgress' : 'Pending',
          record,
          progress: runner.progress(record),
        };
      }
      default:
        return status satisfies never;
    }
  }

  async #remove(session: SessionRecord): Promise<void> {
    const { sessions, logger } = this.#options;
    this.#runners.delete(session.id);
    try {
      await sessions.remove(session.id);
    } catch (cause) {
      logger.error({ session: session.name }, 'deletion failed');
      const error = LoopwrightError.isInstance(cause) ? cause : undefined;
      await sessions.change(session.id, {
        from: ['Deleting'],
        to: 'DeletionFailed',
        ...(error === undefined ? {} : { error }),
      });
      throw cause;
    }
  }

  #run(session: SessionRecord): void {
    this.#background(this.#runnerOf(session).start(), session.name);
  }

  #runnerOf(session: SessionRecord): SessionRunner {
    const known = this.#runners.get(session.id);
    if (known !== undefined) return known;
    const { tools, sessions, engines, logger, limits } = this.#options;
    const runner = new SessionRunner({ session, tools, sessions, engines, logger, limits });
    this.#runners.set(session.id, runner);
    return runner;
  }

  /** @throws `limit_exceeded`: what waits takes memory, and whoever submits faster than engines work would take all of it */
  #checkOpen(session: SessionRecord): void {
    const limit = this.#options.limits.maxOpenOperations;
    const open = this.#runners.get(session.id)?.openCount ?? 0;
    if (open < limit) return;
    const expected = `at most ${limit} operations of a session that have not ended`;
    throw complaint({ code: 'limit_exceeded', field: 'session', expected, got: String(open) });
  }

  #background(work: Promise<void>, session: string): void {
    work.catch((error: unknown) => {
      const code = LoopwrightError.isInstance(error) ? error.code : 'internal';
      this.#options.logger.error({ session, code }, 'work in the background failed');
    });
  }
}
