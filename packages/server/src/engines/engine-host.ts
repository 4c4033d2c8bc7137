/** One engine per base model, made when first needed, shared by all sessions on it, and made anew when it is beyond repair. */
import type { Engine } from '@loopwright/engine';
import { asLoopwrightError, LoopwrightError, type ModelCard } from '@loopwright/protocol';
import type { ModelRegistry } from '../models/model-registry.js';

export interface CreateEngineOptions {
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

interface Slot {
  readonly engine: Promise<Engine>;
  /** Once it is ready. */
  ready: Engine | undefined;
  state: EngineState;
}

export class EngineHost {
  readonly #models: ModelRegistry;
  readonly #create: CreateEngine;
  readonly #slots = new Map<string, Slot>();
  #closed = false;

  constructor({ models, create }: { models: ModelRegistry; create: CreateEngine }) {
    this.#models = models;
    this.#create = create;
  }

  /**
   * The engine of a model. A failed start is forgotten, so that the next call tries again.
   * @throws `unknown_model`, `model_invalid`, `unsupported_model`, `out_of_memory`, `engine_failed`; `disposed` after `close`
   */
  async engine(model: string): Promise<Engine> {
    const known = this.#slots.get(model);
    if (known !== undefined && known.state.state !== 'failed') return known.engine;
    let isOver = false;
    const onExit = () => {
      isOver = true;
      if (this.#slots.get(model) === slot) this.#slots.delete(model);
    };
    const slot: Slot = { engine: this.#start(model, onExit), ready: undefined, state: { model, state: 'loading' } };
    this.#slots.set(model, slot);
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

  /** Whether an engine is still the one that calls for its model get. */
  isServing(model: string, engine: Engine): boolean {
    return this.#slots.get(model)?.ready === engine;
  }

  /** Gives an engine up; the next `engine` call makes another. */
  async discard(model: string, engine: Engine): Promise<void> {
    if (!this.isServing(model, engine)) return;
    this.#slots.delete(model);
    await engine[Symbol.asyncDispose]();
  }

  states(): EngineState[] {
    return [...this.#slots.values()].map(({ state }) => state);
  }

  /** Ends every engine. Closing twice is harmless. */
  async close(): Promise<void> {
    this.#closed = true;
    const slots = [...this.#slots.values()];
    this.#slots.clear();
    await Promise.all(
      slots.map(async ({ engine }) => {
        const made = await engine.catch(() => undefined); // a start that failed has nothing to end
        await made?.[Symbol.asyncDispose]();
      }),
    );
  }

  async #start(model: string, onExit: () => void): Promise<Engine> {
    if (this.#closed) throw new LoopwrightError({ code: 'disposed', message: 'the server is closing' });
    const card = await this.#models.card(model);
    const engine = await this.#create(card, { onExit });
    if (this.#closed) await engine[Symbol.asyncDispose]();
    return engine;
  }
}
