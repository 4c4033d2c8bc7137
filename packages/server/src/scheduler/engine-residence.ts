/** Where a session lives: in the engine of its base model, and made there anew whenever that engine is another incarnation. */
import type { Engine, ExecutionPlan } from '@loopwright/engine';
import { LoopwrightError } from '@loopwright/protocol';
import type { Logger } from 'pino';
import { type EngineHost, type EngineNeed, enginePlanOf, maxAttempts } from '../engines/engine-host.js';
import type { TrainingRecord } from '../operations/operation-record.js';
import type { SessionRecord } from '../sessions/session-record.js';
import type { SessionRepository } from '../sessions/session-repository.js';
import type { ExecutionTools } from './execute.js';
import { rebuildSession } from './rebuild.js';

export interface ResidenceOptions {
  readonly session: SessionRecord;
  readonly sessions: SessionRepository;
  readonly engines: EngineHost;
  readonly tools: ExecutionTools;
  readonly logger: Logger;
  /** Told which operations were run again whenever the session was made. */
  readonly onMade: (replayed: readonly TrainingRecord[]) => void;
}

export class EngineResidence {
  readonly #options: ResidenceOptions;
  /** Of the engine in which the session was made; undefined when it has to be made (again). */
  #incarnation: string | undefined;
  #plan: ExecutionPlan | undefined;
  #isGivenUp = false;

  constructor(options: ResidenceOptions) {
    this.#options = options;
  }

  /** The engine, whether the session is in it or not. */
  engine(): Promise<Engine> {
    const { model, plan } = this.need;
    return this.#options.engines.engine(model, plan);
  }

  /** Which engine that is. */
  get need(): EngineNeed {
    const { spec, plan } = this.#options.session;
    return { model: spec.baseModel, plan: plan === null ? undefined : enginePlanOf(plan) };
  }

  /** Of the session, once it was made. */
  get plan(): ExecutionPlan | undefined {
    return this.#plan;
  }

  /** Whether the session was made in this engine. */
  isIn(engine: Engine): boolean {
    return engine.incarnation === this.#incarnation;
  }

  /** Makes the session in the engine unless it is there already, or has nothing to keep there; returns its plan if it made it. */
  async enter(nextSequenceNumber: number): Promise<ExecutionPlan | undefined> {
    const { session, sessions, tools, logger, onMade } = this.#options;
    if (session.spec.training.type === 'none') return undefined;
    for (let attempt = 1; ; attempt++) {
      const engine = await this.engine();
      const { incarnation } = engine;
      if (incarnation === this.#incarnation) return undefined;
      try {
        const current = await sessions.byId(session.id);
        const { plan, replayed } = await rebuildSession({
          engine,
          session: current,
          nextSequenceNumber,
          tools,
          logger,
        });
        this.#plan = plan;
        onMade(replayed);
        this.#incarnation = incarnation;
        if (this.#isGivenUp) await engine.closeSession(session.name);
        return plan;
      } catch (error) {
        if (attempt >= maxAttempts || !(await this.isGone(engine, incarnation, error))) throw error;
      }
    }
  }

  /** The engine is ahead of the log: the session is made anew before it is used again. */
  distrust(): void {
    this.#incarnation = undefined;
  }

  /** The session has ended; one that is being made is taken down as soon as it is there. */
  giveUp(): void {
    this.#isGivenUp = true;
  }

  /** Frees the engine's memory of the session. */
  async leave(): Promise<void> {
    if (this.#incarnation !== undefined) await (await this.engine()).closeSession(this.#options.session.name);
  }

  /** Whether a failure came from the end of the engine's process, so that the same call may work on its successor. */
  async isGone(engine: Engine, incarnation: string, error: unknown): Promise<boolean> {
    const { engines } = this.#options;
    if (engine.incarnation !== incarnation || !engines.isServing(engine)) return true;
    if (!LoopwrightError.isInstance(error) || error.code !== 'disposed') return false;
    await engines.discard(engine);
    return true;
  }
}
