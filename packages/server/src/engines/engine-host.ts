/** One engine per base model, made when first needed, shared by all sessions on it, and made anew when it is beyond repair. */
import type { Engine } from '@loopwright/engine';
import { asLoopwrightError, type ModelCard } from '@loopwright/protocol';
import type { ModelRegistry } from '../models/model-registry.js';

export type CreateEngine = (card: ModelCard) => Promise<Engine>;

/** What the health route tells of an engine. */
export interface EngineState {
  readonly model: string;
  readonly state: 'loading' | 'ready' | 'failed';
  readonly incarnation?: string;
  readonly error?: string;
}

interface Slot {
  readonly engine: Promise<Engine>;
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
    const slot: Slot = { engine: this.#start(model), state: { model, state: 'loading' } };
    this.#slots.set(model, slot);
    try {
      const engine = await slot.engine;
      slot.state = { model, state: 'ready', incarnation: engine.incarnation };
      return engine;
    } catch (error) {
      const { message } = asLoopwrightError(error, 'engine_failed');
      slot.state = { model, state: 'failed', error: message };
      throw error;
    }
  }

  /** Gives an engine up, such as one whose process does not come back; the next `engine` call makes another. */
  async discard(model: string, engine: Engine): Promise<void> {
    const slot = this.#slots.get(model);
    if (slot === undefined || slot.state.state === 'loading' || (await slot.engine.catch(() => undefined)) !== engine)
      return;
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

  async #start(model: string): Promise<Engine> {
    const card = await this.#models.card(model);
    const engine = await this.#create(card);
    if (this.#closed) await engine[Symbol.asyncDispose]();
    return engine;
  }
}
