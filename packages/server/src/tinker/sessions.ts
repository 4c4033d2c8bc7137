/**
 * Sessions of this wire: what one program of a client made. They end when their client says so, or is not heard of any more;
 * then their models are unloaded and the unnamed weights of their samplers go.
 */
import { randomUUID } from 'node:crypto';
import { asLoopwrightError, complaint, type LoopwrightError } from '@loopwright/protocol';
import type { JsonObject } from '@loopwright/wires/tinker';
import type { Logger } from 'pino';
import type { Clock } from '../clock.js';
import type { Registry } from '../registry/registry.js';
import type { SessionService } from '../sessions/session-service.js';
import type { TinkerRepository, TinkerSessionRow } from './repository.js';

/** A client that was silent for so long may have died: its models make room where there is none. Heartbeats come every 10 s. */
const quietAfterMs = 120_000;
/** A client that was silent for so long has died. */
const deadAfterMs = 3_600_000;
/** How long what was accepted may go on after its client said that it is done. */
const drainMs = 600_000;
/** How long a client that says so waits for it. */
const answerAfterMs = 5000;

export interface TinkerSessionsOptions {
  readonly repository: TinkerRepository;
  readonly service: SessionService;
  readonly registry: Registry;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly workspaceId: string;
}

export class TinkerSessions {
  readonly #options: TinkerSessionsOptions;
  /** Ids of those that end in this process now. */
  readonly #ending = new Set<string>();

  constructor(options: TinkerSessionsOptions) {
    this.#options = options;
  }

  /** @returns its id */
  async create(facts: JsonObject): Promise<string> {
    const id = randomUUID();
    await this.#options.repository.addSession({ id, facts, atMs: this.#options.clock.now() });
    return id;
  }

  /** @throws `unknown_session` */
  async get(id: unknown): Promise<TinkerSessionRow> {
    const known = typeof id === 'string' ? await this.#options.repository.session(id) : undefined;
    if (known !== undefined) return known;
    throw complaint({
      code: 'unknown_session',
      field: 'session_id',
      expected: 'a session of this server',
      got: typeof id === 'string' ? 'another' : typeof id,
      remedy: 'make a new client: its constructor creates a session',
    });
  }

  /** A session that lives. @throws `unknown_session`; `session_not_active` for one that has ended */
  async live(id: unknown): Promise<TinkerSessionRow> {
    const session = await this.get(id);
    if (session.finish === null) return session;
    throw complaint({
      code: 'session_not_active',
      field: 'session_id',
      expected: 'a session that lives',
      got: 'one that has ended',
      remedy: 'make a new client: its constructor creates a session',
    });
  }

  /** False for one that has ended. @throws `unknown_session` */
  async heartbeat(id: unknown): Promise<boolean> {
    const session = await this.get(id);
    if (session.finish !== null) return false;
    await this.#options.repository.changeSession(session.id, { heartbeatAtMs: this.#options.clock.now() });
    return true;
  }

  /** Once: the first reason stays. What was accepted goes on to its end, which is awaited for a moment. @throws `unknown_session` */
  async finish(id: unknown, reason: JsonObject): Promise<void> {
    const session = await this.get(id);
    if (session.finish !== null) return;
    await this.#options.repository.changeSession(session.id, { finish: reason });
    const { clock, logger } = this.#options;
    const ending = this.#end(session.id, drainMs).catch((error: unknown) => {
      logger.error({ session: session.id, code: asLoopwrightError(error).code }, 'a session could not be ended');
    });
    let cancel = () => {};
    const limit = new Promise<void>((resolve) => {
      cancel = clock.after(answerAfterMs, resolve);
    });
    await Promise.race([ending, limit]);
    cancel();
  }

  /** Ends the sessions whose clients have died, and those at whose end the server died. */
  async endDead(): Promise<void> {
    const { repository, clock, registry, workspaceId } = this.#options;
    for (const id of await repository.halfEnded()) if (!this.#ending.has(id)) await this.#end(id, 0);
    for (const { id } of await repository.quietSessions(clock.now() - deadAfterMs)) await this.#lapse(id);
    for (const { session, version } of await repository.unnamedLeft(clock.now())) {
      if (!this.#ending.has(session)) await registry.delete(workspaceId, version);
    }
  }

  /** Does `work`; where that finds no room for a model, ends the sessions of silent clients and does it again. */
  async makingRoom<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if ((error as Partial<LoopwrightError>).code !== 'quota_exceeded') throw error; // true: read of any error
      const { repository, clock } = this.#options;
      const quiet = await repository.quietSessions(clock.now() - quietAfterMs);
      if (quiet.length === 0) throw error;
      for (const { id } of quiet) await this.#lapse(id);
      return work();
    }
  }

  async #lapse(id: string): Promise<void> {
    await this.#options.repository.changeSession(id, { finish: { reason: { type: 'lost' } } });
    await this.#end(id, 0);
  }

  async #end(id: string, waitMs: number): Promise<void> {
    this.#ending.add(id);
    try {
      await this.#endAll(id, waitMs);
    } finally {
      this.#ending.delete(id);
    }
  }

  async #endAll(id: string, waitMs: number): Promise<void> {
    const { repository, service, registry, workspaceId } = this.#options;
    for (const name of await repository.namesOf(id)) {
      if (waitMs > 0) await service.settled(name, waitMs);
      await service.stopped(name);
    }
    for (const { operation_id } of await repository.samplersOf(id)) {
      const version = operation_id === null ? undefined : await registry.ofOperation(workspaceId, operation_id);
      if (version !== undefined) await registry.delete(workspaceId, version.id);
    }
  }
}
