/** The memory limit of an engine: micro-batches that fit it, fixed in a session's plan, and refusals of what never would, before any work. */
import { LoopwrightError, type TrainingSpec } from '@loopwright/protocol';
import type { ExecutionPlan } from '../engine.js';
import {
  heldBytes,
  microBatchBytes,
  modelBytes,
  packedTrainingBytes,
  type SamplingSize,
  samplingBytes,
  scoringBytes,
  sessionBytes,
} from './memory.js';
import type { ModelConfig } from './models/config.js';
import { formOf } from './models/sequence-form.js';
import type { MicroBatch } from './train/micro-batch.js';

/** Tokens of the smallest micro-batch that is worth more than one in which layers are computed again: that takes a third more time. */
const smallestKept = 256;
/** Tokens of the smallest micro-batch that a limit leads to; more memory is saved by shorter sequences alone. */
const smallestMicroBatch = 64;

/** The cache of rows that sampling has by default, where the limit is no tighter. */
const largestCacheBytes = 2 * 2 ** 30;

/** Memory for keys and values by default: how many rows are decoded together changes no bit. */
export function defaultCacheBytes(maxMemoryBytes: number): number {
  return Math.min(largestCacheBytes, Math.floor(maxMemoryBytes / 8));
}

export interface MemoryOptions {
  readonly config: ModelConfig;
  readonly training: TrainingSpec;
  readonly maxMemoryBytes: number;
}

/**
 * The plan as it fits beside all else that the engine may hold for this session: without packed weights and, if that is not enough, with
 * fewer tokens in a micro-batch, where one long row of them would not; and with layers computed again in longer rows than the longest that
 * fits without. Where not even a short micro-batch fits, in all. A function of model, session and limit: never of other sessions or of free memory.
 */
export function planWithin(
  plan: ExecutionPlan,
  { config, training, maxMemoryBytes, cacheBytes }: MemoryOptions & { readonly cacheBytes: number },
): ExecutionPlan {
  const { samplerPrecision } = plan;
  const room = (packWeights: boolean) =>
    maxMemoryBytes - heldBytes({ config, training, cacheBytes, packWeights, samplerPrecision });
  const row = (length: number, recompute: ExecutionPlan['recompute']) =>
    rowBytes(config, training, { length, recompute });
  const packWeights = plan.packWeights === true && row(plan.microBatchTokens, plan.recompute) <= room(true);
  const fits = (length: number, recompute: ExecutionPlan['recompute']) => row(length, recompute) <= room(packWeights);
  const within = (recompute: ExecutionPlan['recompute'], least: number) => {
    let tokens = plan.microBatchTokens;
    while (tokens > least && !fits(tokens, recompute)) tokens = Math.max(least, tokens >> 1);
    return tokens;
  };
  const { recompute } = plan;
  const microBatchTokens = within(recompute, smallestMicroBatch);
  const all = { attentionOver: 0, ...recompute, layersOver: 0 };
  // In a model of few layers one of them and its gradients may be more than is kept of all.
  const saves = row(microBatchTokens, all) < row(microBatchTokens, recompute);
  if (recompute === undefined || !saves) return { ...plan, packWeights, microBatchTokens };
  if (microBatchTokens < Math.min(plan.microBatchTokens, smallestKept))
    return { ...plan, packWeights, recompute: all, microBatchTokens: within(all, smallestMicroBatch) };
  let layersOver = microBatchTokens;
  while (layersOver < recompute.layersOver && fits(2 * layersOver, recompute)) layersOver *= 2;
  layersOver = Math.min(layersOver, recompute.layersOver);
  return { ...plan, packWeights, recompute: { ...recompute, layersOver }, microBatchTokens };
}

/** A pass over one row that keeps what its plan says, with gradients. */
function rowBytes(
  config: ModelConfig,
  training: TrainingSpec,
  { length, recompute }: { readonly length: number; readonly recompute: ExecutionPlan['recompute'] },
): number {
  const form = formOf(recompute, { rows: 1, length });
  return microBatchBytes(config, training, { rows: 1, length, targets: 1, backward: true, form });
}

/** @throws `memory_limit_exceeded` for a model whose weights alone are above the limit */
export function checkModelMemory(config: ModelConfig, maxMemoryBytes: number): void {
  check({
    field: 'baseModel',
    what: 'a model',
    needed: modelBytes(config),
    limit: maxMemoryBytes,
    remedy: `choose a smaller model, or ${raiseLimit}`,
  });
}

/** @param others bytes of the sessions that there are @throws `memory_limit_exceeded` for a session with which no pass would fit */
export function checkSessionMemory(
  { microBatchTokens, lengthMultiple, packWeights = false, recompute }: ExecutionPlan,
  { config, training, maxMemoryBytes, others }: MemoryOptions & { readonly others: number },
): void {
  const length = Math.min(microBatchTokens, lengthMultiple);
  const pass = rowBytes(config, training, { length, recompute });
  const smaller =
    training.type === 'lora' ? 'a smaller rank, fewer target modules' : 'an adapter instead of all weights';
  check({
    field: 'training',
    what: others > 0 ? 'model, sessions and a short pass' : 'model, session and a short pass',
    needed: held({ config, training, packWeights }) + others + pass,
    limit: maxMemoryBytes,
    remedy: `choose ${smaller}${others > 0 ? ', end another session' : ''}, or ${raiseLimit}`,
  });
}

/** @throws `memory_limit_exceeded` naming a datum of the largest micro-batch, where that does not fit beside model and session */
export function checkPassMemory(
  batches: readonly MicroBatch[],
  options: MemoryOptions & { readonly backward: boolean; readonly plan: ExecutionPlan },
): void {
  const { config, training, maxMemoryBytes, backward, plan } = options;
  const heldBytes = held({ config, training, packWeights: backward && plan.packWeights === true });
  for (const { rows, length, targets, form } of batches) {
    const size = { rows: rows.length, length, targets, backward, form };
    const fewer = targets > 1 ? 'fewer targets a token, ' : '';
    check({
      field: `data[${Math.min(...rows[0]!.datums)}].modelInput`,
      what: `a pass over ${rows.length === 1 ? 'a row' : `${rows.length} rows`} of ${length} tokens`,
      needed: heldBytes + microBatchBytes(config, training, size),
      limit: maxMemoryBytes,
      remedy: `give shorter sequences, ${fewer}or ${raiseLimit}`,
    });
  }
}

/** @throws `memory_limit_exceeded` for a prompt and answer of which not even one would fit beside the model */
export function checkSamplingMemory(
  config: ModelConfig,
  size: Omit<SamplingSize, 'rows'>,
  maxMemoryBytes: number,
): void {
  check({
    field: 'prompt',
    what: `a prompt of ${size.promptTokens} tokens with its answer, ${size.positions} in all`,
    needed: modelBytes(config) + samplingBytes(config, { ...size, rows: 1 }),
    limit: maxMemoryBytes,
    remedy: `shorten the prompt, ask for fewer tokens, or ${raiseLimit}`,
  });
}

/** @throws `memory_limit_exceeded` for a prompt that does not fit beside the model */
export function checkScoringMemory(config: ModelConfig, tokens: number, maxMemoryBytes: number): void {
  check({
    field: 'prompt',
    what: `a prompt of ${tokens} tokens`,
    needed: modelBytes(config) + scoringBytes(config, tokens),
    limit: maxMemoryBytes,
    remedy: `shorten the prompt, or ${raiseLimit}`,
  });
}

/** Of model and session, with which a pass begins. */
function held({
  config,
  training,
  packWeights,
}: Omit<MemoryOptions, 'maxMemoryBytes'> & { readonly packWeights: boolean }): number {
  return modelBytes(config) + sessionBytes(config, training) + (packWeights ? packedTrainingBytes(config) : 0);
}

const raiseLimit = 'raise the limit (maxMemoryBytes of connect, serve --max-memory)';

interface Check {
  readonly field: string;
  readonly what: string;
  readonly needed: number;
  readonly limit: number;
  readonly remedy: string;
}

function check({ field, what, needed, limit, remedy }: Check): void {
  if (needed <= limit) return;
  const expected = `${what} within the ${gigabytes(limit)} that the engine may use`;
  const got = `a predicted need of ${gigabytes(needed)}`;
  throw new LoopwrightError({
    code: 'memory_limit_exceeded',
    message: `${field}: expected ${expected}, got ${got}; ${remedy}`,
    details: { field, expected, got, remedy, neededBytes: needed, limitBytes: limit },
  });
}

/** Such as `7.95 GB (7950000000 bytes)`. */
function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(2)} GB (${bytes} bytes)`;
}
