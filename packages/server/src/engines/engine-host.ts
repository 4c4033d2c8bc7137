/**
 * One engine per base model, number of threads, device and precision of sampling, made when first needed, shared by all sessions on it, and
 * made anew when it is beyond repair. These are part of a session's plan: a session that goes on under a server of others keeps its own.
 */
import type { Device, Engine, ExecutionPlan, SamplerPrecision } from '@loopwright/engine';
import { asLoopwrightError, LoopwrightError, type ModelCard } from '@loopwright/protocol';
import type { ModelRegistry } from '../models/model-registry.js';

/** What an engine's end took down, its own start included, is tried this often; then it is the likely cause. */
export const maxAttempts = 3;

/** What an engine is made for: the part of a plan that holds for all of its sessions. */
export interface EnginePlan {
  readonly threads: number;
  readonly device: Device;
  readonly samplerPrecision: SamplerPrecision;
}

/** The part of a recorded plan. */
export function enginePlanOf({
  threads,
  device = 'cpu',
  samplerPrecision = 'float32',
}: Pick<ExecutionPlan, keyof EnginePlan>): EnginePlan {
  return { threads, device, samplerPrecision };
}

export interface CreateEngineOptions extends EnginePlan {
  /** To be called when the engine ends by itself (its process died), so that the next call gets another one. */
  readonly onExit: () => void;
}

export type CreateEngine = (card: ModelCard, options: CreateEngineOptions) => Promise<Engine>;

/** What the health route tells of an engine. */
export interface EngineState {
  readonly model: string;
  readonly state: 'loading' | 'ready' | 'failed';
  readonly incarnation?: string;
  readonly error?: string;
}

/** A model, and the plan of the sessions that need its engine; undefined for that of new ones. */
export interface EngineNeed {
  readonly model: string;
  readonly plan: EnginePlan | undefined;
}

interface Slot {
  readonly model: string;
  readonly plan: EnginePlan;
  readonly engine: Promise<Engine>;
  /** Once it is ready. */
  ready: Engine | undefined;
  state: EngineState;
  /** It was asked for since it was last looked at. */
  wasAsked: boolean;
  /** When it was last seen in use; undefined before it was looked at. */
  usedAtMs: number | undefined;
}

export class EngineHost {
  readonly #models: ModelRegistry;
  readonly #create: CreateEngine;
  readonly #plan: EnginePlan;
  readonly #slots = new Set<Slot>();
  #closed = false;

  /** `plan` is that of new sessions. */
  constructor({ models, create, plan }: { models: ModelRegistry; create: CreateEngine; plan: EnginePlan }) {
    this.#models = models;
    this.#create = create;
    this.#plan = plan;
  }

  /**
   * The engine of a model for a plan, that of new sessions by default. One that dies while it starts is started again, as callers of a
   * running one are served by its successor; a failed start is forgotten, so that the next call tries again.
   * @throws `unknown_model`, `model_invalid`, `unsupported_model`, `device_unavailable`, `out_of_memory`, `engine_failed`; `disposed` after `close`
   */
  async engine(model: string, plan: EnginePlan = this.#plan): Promise<Engine> {
    const known = [...this.#slots].find((slot) => isFor(slot, model, plan));
    if (known !== undefined && known.state.state !== 'failed') {
      known.wasAsked = true;
      return known.engine;
    }
    if (known !== undefined) this.#slots.delete(known);
    let isOver = false;
    const onExit = () => {
      isOver = true;
      this.#slots.delete(slot);
    };
    const engine = this.#start(model, { ...plan, onExit });
    const slot: Slot = {
      ...{ model, plan, engine, ready: undefined, wasAsked: true, usedAtMs: undefined },
      state: { model, state: 'loading' },
    };
    this.#slots.add(slot);
    try {
      const engine = await slot.engine;
      slot.ready = engine;
      slot.state = { model, state: 'ready', incarnation: engine.incarnation };
      if (isOver) onExit();
      return engine;
    } catch (error) {
      const { message } = asLoopwrightError(error, 'engine_failed');
      slot.state = { model, state: 'failed', error: message };
      throw error;
    }
  }

  /** Whether calls are still answered with this engine. */
  isServing(engine: Engine): boolean {
    return this.#slotOf(engine) !== undefined;
  }

  /** Gives an engine up; the next `engine` call makes another. */
  async discard(engine: Engine): Promise<void> {
    const slot = this.#slotOf(engine);
    if (slot === undefined) return;
    this.#slots.delete(slot);
    await engine[Symbol.asyncDispose]();
  }

  /**
   * Ends the engines that nothing needed for `afterMs`, by looks from time to time; the next `engine` call loads the model again. Work
   * that takes an engine at this moment is run on its successor, as after the end of a process.
   *
   * @param needs what needs an engine now
   * @param nowMs of a clock that goes on evenly
   * @returns the models whose engines ended
   */
  async endIdle(
    needs: readonly EngineNeed[],
    { nowMs, afterMs }: { nowMs: number; afterMs: number },
  ): Promise<string[]> {
    const isNeeded = (slot: Slot) => needs.some(({ model, plan = this.#plan }) => isFor(slot, model, plan));
    for (const slot of this.#slots) {
      if (slot.usedAtMs === undefined || slot.wasAsked || isNeeded(slot)) slot.usedAtMs = nowMs;
      slot.wasAsked = false;
    }
    const idle = [...this.#slots].filter(({ usedAtMs = nowMs }) => nowMs - usedAtMs > afterMs);
    await Promise.all(idle.map(async ({ ready }) => ready === undefined || this.discard(ready)));
    return idle.filter(({ ready }) => ready !== undefined).map(({ model }) => model);
  }

  states(): EngineState[] {
    return [...this.#slots].map(({ state }) => state);
  }

  /** Ends every engine. Closing twice is harmless. */
  async close(): Promise<void> {
    this.#closed = true;
    const slots = [...this.#slots];
    this.#slots.clear();
    await Promise.all(
      slots.map(async ({ engine }) => {
        const made = await engine.catch(() => undefined); // a start that failed has nothing to end
        await made?.[Symbol.asyncDispose]();
      }),
    );
  }

  #slotOf(engine: Engine): Slot | undefined {
    return [...this.#slots].find(({ ready }) => ready === engine);
  }

  async #start(model: string, options: CreateEngineOptions): Promise<Engine> {
    if (this.#closed) throw new LoopwrightError({ code: 'disposed', message: 'the server is closing' });
    const card = await this.#models.card(model);
    const engine = await this.#createAgain(card, options);
    if (this.#closed) await engine[Symbol.asyncDispose]();
    return engine;
  }

  async #createAgain(card: ModelCard, options: CreateEngineOptions): Promise<Engine> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#create(card, options);
      } catch (error) {
        const isEnd = asLoopwrightError(error).code === 'engine_failed';
        if (!isEnd || attempt >= maxAttempts || this.#closed) throw error;
      }
    }
  }
}

function isFor(slot: Slot, model: string, { threads, device, samplerPrecision }: EnginePlan): boolean {
  const { plan } = slot;
  const isSame = plan.threads === threads && plan.device === device && plan.samplerPrecision === samplerPrecision;
  return slot.model === model && isSame;
}
