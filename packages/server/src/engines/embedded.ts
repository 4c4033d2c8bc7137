/** Engines on this machine, each in a process of its own. */
import type { Engine } from '@loopwright/engine';
import type { ModelCard } from '@loopwright/protocol';
import type { CreateEngine, CreateEngineOptions } from './engine-host.js';

/** The part of the embedded engine that is relied on; loaded only when a model is. */
interface EmbeddedEngineModule {
  spawnEngine(card: ModelCard, options: EmbeddedEngineOptions & CreateEngineOptions): Promise<Engine>;
}

export interface EmbeddedEngineOptions {
  /** For float32 copies of weights. */
  readonly cacheDirectory: string;
  /** Memory of an engine's process at most; nine tenths of the machine's by default. */
  readonly maxMemoryBytes?: number;
}

export function embeddedEngines(options: EmbeddedEngineOptions): CreateEngine {
  return async (card, { threads, onExit }) => {
    const specifier = '@loopwright/engine/local';
    const { spawnEngine } = (await import(specifier)) as EmbeddedEngineModule; // true: its public API
    return spawnEngine(card, { ...options, threads, onExit });
  };
}
