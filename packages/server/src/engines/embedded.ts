/** Engines on this machine, each in a process of its own. */
import type { Engine, PrecisionEffect, SwapEvent } from '@loopwright/engine';
import type { ModelCard } from '@loopwright/protocol';
import type { Logger } from 'pino';
import type { CreateEngine, CreateEngineOptions } from './engine-host.js';

/** The part of the embedded engine that is relied on; loaded only when a model is. */
interface EmbeddedEngineModule {
  spawnEngine(
    card: ModelCard,
    options: Omit<EmbeddedEngineOptions, 'logger' | 'onPrecisionEffect'> &
      CreateEngineOptions & { onSwap: (event: SwapEvent) => void },
  ): Promise<Engine>;
}

export interface EmbeddedEngineOptions {
  /** For float32 copies of weights. */
  readonly cacheDirectory: string;
  /** Memory of an engine's process at most; nine tenths of the machine's by default. */
  readonly maxMemoryBytes?: number;
  /** New sessions keep of a pass only what goes into each layer; false by default. */
  readonly lowMemory?: boolean;
  /** Sessions without work for so long go to the disk; null for never. */
  readonly swapAfterMs?: number | null;
  /** Told, as an engine is loaded that samples in less than float32, how far its logprobs are off. */
  readonly onPrecisionEffect?: ((loaded: LoadedPrecision) => void) | undefined;
  /** Told of sessions that go to the disk and come back, and warned where one can't go. */
  readonly logger?: Logger;
}

/** An engine that samples in less than float32. */
export interface LoadedPrecision extends PrecisionEffect {
  /** Of the base model. */
  readonly model: string;
}

export function embeddedEngines({ logger, onPrecisionEffect, ...options }: EmbeddedEngineOptions): CreateEngine {
  const onSwap = (event: SwapEvent) => {
    if (event.type === 'swap-failed')
      logger?.warn(event, 'an idle session stays in memory: it could not be put on the disk');
    else logger?.debug(event, event.type === 'swap-out' ? 'an idle session went to the disk' : 'a session came back');
  };
  return async (card, { onExit, ...plan }) => {
    const specifier = '@loopwright/engine/local';
    const { spawnEngine } = (await import(specifier)) as EmbeddedEngineModule; // true: its public API
    const engine = await spawnEngine(card, { ...options, ...plan, onExit, onSwap });
    if (engine.precisionEffect !== undefined) {
      const loaded = { model: card.id, ...engine.precisionEffect };
      logger?.info(loaded, 'sampling in less than float32: so far are its logprobs off');
      onPrecisionEffect?.(loaded);
    }
    return engine;
  };
}
