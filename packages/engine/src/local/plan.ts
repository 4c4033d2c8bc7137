/** The execution plan: everything about how a session is computed that could change bits. Fixed when a session is made, recorded, never derived from load. */
import { createRequire } from 'node:module';
import { defaultTargetModules, type TrainingSpec } from '@loopwright/protocol';
import type { Device } from '../devices.js';
import type { ExecutionPlan } from '../engine.js';
import type { SamplerPrecision } from '../precision.js';
import { defaultThreads } from '../threads.js';
import type { ModelConfig } from './models/config.js';

export interface PlanOptions {
  /** Threads of the runtime; the processors of the machine by default, 8 at most. */
  readonly threads?: number;
  /** `cpu` by default. */
  readonly device?: Device;
  /**
   * `int8` draws tokens by weights and activations rounded to 8 bits: faster, and other probabilities. Sampled logprobs are those that tokens
   * were drawn by; prompt logprobs, `computeLogprobs` and training stay in float32. `float32` by default.
   */
  readonly samplerPrecision?: SamplerPrecision;
  /** Tokens at most in a micro-batch; by the size of the model by default. */
  readonly microBatchTokens?: number;
  /** False saves the memory of packed weights (decision 0012), for a tenth of the speed of training; true by default, where it fits the limit. */
  readonly packWeights?: boolean;
  /** Computes every layer again in the backward pass: a fraction of the memory, in about a third more time. By default only where memory asks for it. */
  readonly lowMemory?: boolean;
}

/** Attention is computed again in rows of more tokens: up to here its scores are a small part of what is kept. */
const attentionOver = 512;

/** A micro-batch is a slice: on a 135M model 1,024 tokens take about two seconds on two cores, and lose 3 % against 2,048. */
function defaultMicroBatchTokens({ hiddenSize }: ModelConfig): number {
  return hiddenSize <= 256 ? 8192 : 1024;
}

export function executionPlan(
  config: ModelConfig,
  {
    threads,
    device = 'cpu',
    samplerPrecision = 'float32',
    microBatchTokens,
    packWeights = true,
    lowMemory = false,
  }: PlanOptions,
  training: TrainingSpec,
): ExecutionPlan {
  const tokens = microBatchTokens ?? defaultMicroBatchTokens(config);
  return {
    engine: 'local',
    runtimeVersion: `onnxruntime-node ${runtimeVersion()}`,
    threads: threads ?? defaultThreads(),
    device,
    deterministic: device === 'cpu',
    samplerPath: training.type === 'full' ? 'merged' : (training.samplerPath ?? 'apart'),
    samplerPrecision,
    microBatchTokens: tokens,
    lengthMultiple: 16,
    sharePrefixes: true,
    packWeights: packWeights && !lowMemory && adaptsEveryLayer(training),
    recompute: { attentionOver, layersOver: lowMemory ? 0 : Math.max(tokens, config.contextLength) },
  };
}

/** Every set of modules has a program of its own, so only the usual one may cost the memory of packed weights. */
function adaptsEveryLayer(training: TrainingSpec): boolean {
  if (training.type !== 'lora') return false;
  const modules = new Set(training.targetModules);
  return modules.size === defaultTargetModules.length && defaultTargetModules.every((module) => modules.has(module));
}

function runtimeVersion(): string {
  const { version } = createRequire(import.meta.url)('onnxruntime-node/package.json') as { version: string };
  return version;
}
