/** What preflight knows of a base model without loading it: its context, and the memory of a run. */
import type { MemoryModel, PriceModel } from '@loopwright/loops';
import { costOf, type PriceTable } from '@loopwright/loops/node';
import { defaultTargetModules, LoopwrightError } from '@loopwright/protocol';
import type { CommandContext } from '../context.js';
import { modelPath } from '../model-path.js';
import { heldByEngine } from './engine-memory.js';

export interface PredictOptions {
  readonly rank: number;
  /** The engine runs here, within the memory of this machine. */
  readonly isEmbedded: boolean;
}

export interface Predicted {
  readonly contextLength: number;
  readonly memory: MemoryModel;
}

/** Undefined where the engine runs elsewhere, or a server names models that aren't here. @throws what is wrong with a model that is */
export async function predictedModel(
  baseModel: string,
  { rank, isEmbedded }: PredictOptions,
  context: CommandContext,
): Promise<Predicted | undefined> {
  if (!isEmbedded) return undefined;
  let path: string;
  try {
    path = await modelPath(baseModel, context);
  } catch (error) {
    if (LoopwrightError.isInstance(error) && error.code === 'unknown_model') return undefined; // said by who loads it
    throw error;
  }
  const { predictModel } = await import('@loopwright/engine/local');
  const training = { type: 'lora', rank, alpha: rank, targetModules: defaultTargetModules } as const;
  const { contextLength, maxMemoryBytes, runBytes } = await predictModel(path, { training });
  return { contextLength, memory: { limit: maxMemoryBytes, bytes: runBytes, held: heldByEngine } };
}

/** Prices of a model as preflight asks for them. */
export function pricesOf(table: PriceTable, baseModel: string): PriceModel {
  return { currency: table.currency, cost: (usage) => costOf(usage, baseModel, table) };
}
