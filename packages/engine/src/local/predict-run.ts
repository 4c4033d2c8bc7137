/** The memory that an engine will hold for a run of reinforcement learning, predicted without loading its model. */
import type { TrainingSpec } from '@loopwright/protocol';
import { openModel } from '../formats/open-model.js';
import { defaultMaxMemoryBytes } from '../machine-memory.js';
import { heldBytes, microBatchBytes, samplingBytes } from './memory.js';
import { defaultCacheBytes, planWithin } from './memory-limit.js';
import type { ModelConfig } from './models/config.js';
import { formOf, paddedLength } from './models/sequence-form.js';
import { executionPlan, type PlanOptions } from './plan.js';

/** What a step samples and trains on. */
export interface RunSize {
  /** Answers that are sampled at once. */
  readonly rows: number;
  /** Of the longest prompt. */
  readonly promptTokens: number;
  /** Of an answer. */
  readonly newTokens: number;
}

export interface PredictRunOptions extends PlanOptions {
  readonly training: TrainingSpec;
  /** Of the engine; nine tenths of the machine's memory by default. */
  readonly maxMemoryBytes?: number;
}

export interface PredictedModel {
  readonly contextLength: number;
  readonly maxMemoryBytes: number;
  /**
   * Bytes of the engine's process at their peak: model, session, every program for sampling, rows of keys and values, and the largest pass. What was let go of after
   * sampling is counted beside the pass, since the runtime keeps it.
   */
  runBytes(size: RunSize): number;
}

/**
 * Opens a model directory or GGUF file, and closes it again.
 *
 * @throws `unknown_model`, `unsupported_model`, `model_invalid`
 */
export async function predictModel(path: string, options: PredictRunOptions): Promise<PredictedModel> {
  await using model = await openModel(path);
  const { config } = model;
  const { maxMemoryBytes = defaultMaxMemoryBytes() } = options;
  return {
    contextLength: config.contextLength,
    maxMemoryBytes,
    runBytes: (size) => runBytes(config, size, { ...options, maxMemoryBytes }),
  };
}

function runBytes(
  config: ModelConfig,
  { rows, promptTokens, newTokens }: RunSize,
  { training, maxMemoryBytes, ...options }: PredictRunOptions & { readonly maxMemoryBytes: number },
): number {
  const maxCacheBytes = defaultCacheBytes(maxMemoryBytes);
  const wanted = executionPlan(config, options, training);
  const plan = planWithin(wanted, { config, training, maxMemoryBytes, cacheBytes: maxCacheBytes });
  const { microBatchTokens, lengthMultiple, recompute, packWeights = false } = plan;
  const length = paddedLength(promptTokens + newTokens, lengthMultiple, recompute);
  const batchRows = Math.max(1, Math.min(rows, Math.floor(microBatchTokens / length)));
  const form = formOf(recompute, { rows: batchRows, length });
  const pass = microBatchBytes(config, training, { rows: batchRows, length, targets: 1, backward: true, form });
  const positions = promptTokens + newTokens;
  const { samplerPrecision } = plan;
  const sampled = samplingBytes(config, { rows, positions, promptTokens, samplerPrecision });
  const programs = samplingBytes(config, { rows: 0, positions: 0, promptTokens: 0, samplerPrecision });
  const cacheBytes = Math.min(maxCacheBytes, sampled - programs);
  return Math.round(heldBytes({ config, training, cacheBytes, packWeights, samplerPrecision }) + pass);
}
