/**
 * Memory in bytes, predicted before work starts: of a model, a session, a micro-batch, rows that are sampled, a prompt that is scored.
 *
 * Pure functions of config and sizes. They count the arrays that a program holds at its peak, as transformer.ts, training-graph.ts and
 * the gradients of their operations keep them; the constants below are fitted to measured peaks (docs/results), from above.
 *
 * B rows, S tokens of a row, N = B·S, K targets a token, D hidden width, V vocabulary; widths of a layer are counted in numbers a token.
 */
import type { TrainingSpec } from '@loopwright/protocol';
import type { SamplerPrecision } from '../precision.js';
import type { ModelConfig } from './models/config.js';
import { keepsAll, keptForm, type SequenceForm } from './models/sequence-form.js';
import { linearModules, weightSpecs } from './models/weight-names.js';
import { headKinds } from './sample/head-graph.js';
import { spareRoom } from './sample/row-cache.js';
import { scoredPositions } from './sample/score.js';
import { keptVersions } from './sample/snapshots.js';

const float = 4;
/** Node, the runtime's library, and training programs of some thousand operations. */
const processBytes = 170e6;
/** The runtime's arena holds more than the arrays that live: by 1 to 19 % in the passes measured. */
const arenaOverhead = 1.22;
/** Masks of a row at once: as they are kept, as they are made and, where layers have windows, once more. */
const maskCopies = ({ slidingWindow }: ModelConfig) => (slidingWindow === null ? 2 : 3);
/** Numbers of a saved adapter by those of a trained one: as it is, with the scale multiplied in, in the blocks of the decoder, and beside those of other versions. */
const snapshotCopies = 4;

/** Programs that hold tables of rotary positions, of the whole context, each for itself: for passes with and without gradients, short and long, for prompts and for decoding. */
const rotaryPrograms = 8;

/** One copy of the weights that all programs share, in the engine's process, and what every program has of its own. */
export function modelBytes(config: ModelConfig): number {
  const { contextLength, headDim, slidingWindow } = config;
  const tables = (slidingWindow === null ? 1 : 2) * contextLength * headDim;
  return processBytes + float * (parameterCount(config) + rotaryPrograms * tables);
}

/** The programs that decoding can't do without: weights packed for one row after the other, the head as one more where it is the embedding. */
export function decodingBytes(config: ModelConfig, precision: SamplerPrecision = 'float32'): number {
  // The measurement of what int8 does to logprobs leaves a head of the likeliest tokens.
  const heads = precision === 'int8' ? 2 : 1;
  return decoderBytes(config, precision) + heads * headBytes(config, precision);
}

/** A program of decoding steps: the factors of its products, and all else in float32. */
function decoderBytes(config: ModelConfig, precision: SamplerPrecision): number {
  const { vocabSize, hiddenSize, tiedEmbeddings } = config;
  const linear = weightSpecs(config).filter(({ role }) => role === 'linear');
  const factors = linear.reduce((sum, { shape }) => sum + factorBytes(shape, precision), 0);
  const others = parameterCount(config) - linearCount(config) - (tiedEmbeddings ? 0 : vocabSize * hiddenSize);
  return factors + float * others;
}

function headBytes({ vocabSize, hiddenSize }: ModelConfig, precision: SamplerPrecision): number {
  return factorBytes([vocabSize, hiddenSize], precision);
}

/** A weight [out, in]. A rounded one has a scale for each output, and is there as it lies in its file besides. */
function factorBytes([out = 0, inner = 0]: readonly number[], precision: SamplerPrecision): number {
  return precision === 'int8' ? 2 * out * inner + float * out : float * out * inner;
}

/** Every program that decoding may come to have: for the base and, of an adapter, beside it; a head for each way to choose a token. */
function allDecodingBytes(config: ModelConfig, training: TrainingSpec, precision: SamplerPrecision): number {
  const apart = isApart(training);
  const heads = headKinds.length * (apart && training.targetModules.includes('lm_head') ? 2 : 1);
  return (apart ? 2 : 1) * decoderBytes(config, precision) + heads * headBytes(config, precision);
}

/** Weights of linear layers as a training program packs them: each for the way forward and for the way back, and the head once more for its rows. */
export function packedTrainingBytes(config: ModelConfig): number {
  return float * (2 * linearCount(config) + 3 * config.vocabSize * config.hiddenSize);
}

/** Whether versions are adapters beside the weights, which they share; or else each has all weights for itself. */
function isApart(training: TrainingSpec): training is Extract<TrainingSpec, { type: 'lora' }> {
  return training.type === 'lora' && training.samplerPath !== 'merged';
}

/** What a session holds between calls: trained arrays, pending gradient, two moments of each number. */
export function sessionBytes(config: ModelConfig, training: TrainingSpec): number {
  return 4 * float * trainedCount(config, training);
}

/** The versions of a session that are kept to be sampled from. */
export function keptVersionsBytes(
  config: ModelConfig,
  training: TrainingSpec,
  precision: SamplerPrecision = 'float32',
): number {
  if (!isApart(training))
    return keptVersions.model * (float * parameterCount(config) + decodingBytes(config, precision));
  return keptVersions.adapter * snapshotCopies * float * trainedCount(config, training);
}

/** Sizes of a micro-batch. */
export interface BatchSize {
  /** B. */
  readonly rows: number;
  /** S, padded. */
  readonly length: number;
  /** K. */
  readonly targets: number;
  readonly backward: boolean;
  readonly form: SequenceForm;
}

/** What a micro-batch takes beside model and session, until its results are read. */
export function microBatchBytes(
  config: ModelConfig,
  training: TrainingSpec,
  { rows: B, length: S, targets: K, backward, form }: BatchSize,
): number {
  const N = B * S;
  const ranks = training.type === 'lora' ? training.rank * training.targetModules.length : 0;
  const keptOfLayer = layerWidth(config, form) + ranks + (form.attention ? 0 : keptScores(config, S, form));
  // A forward pass lets go of a layer before the next one, and of a block's scores before the next block.
  // A layer that is computed again is there with its gradients.
  const kept = form.layers ? config.layers * config.hiddenSize + 3 * keptOfLayer : config.layers * keptOfLayer;
  const layers = N * (backward ? kept : layerWidth(config, form) + ranks);
  const chunks = keepsAll(form) ? 1 : form.blocks;
  const head = (N / chunks) * headWidth(config, training, { targets: K, backward });
  const working = Math.max(head, N * workingWidth(config, S, form));
  const inputs = B * maskNumbers(config, S, form) + N * (4 * K + 8);
  // Gradients as the program makes them, as copies that are read, and summed up over micro-batches.
  const gradients = backward
    ? 3 * trainedCount(config, training) + (training.type === 'full' ? 2 * N * config.hiddenSize : 0)
    : 0;
  return Math.round(float * (arenaOverhead * (layers + working) + inputs + gradients));
}

/** Sizes of what is sampled at once. */
export interface SamplingSize {
  readonly rows: number;
  /** Of a row at its end: tokens of its prompt and new ones. */
  readonly positions: number;
  /** Of the longest prompt. */
  readonly promptTokens: number;
  /** `float32` by default. */
  readonly samplerPrecision?: SamplerPrecision | undefined;
}

/** What sampling takes beside the model: programs, keys and values of its rows, and their prompts on the way into them. */
export function samplingBytes(
  config: ModelConfig,
  { rows, positions, promptTokens, samplerPrecision }: SamplingSize,
): number {
  const cache = spareRoom * rows * positions * cacheBytesPerPosition(config);
  // As they come out of the program, and kept for rows to come.
  const prompts = (1 + rows) * promptTokens * cacheBytesPerPosition(config);
  return Math.round(decodingBytes(config, samplerPrecision) + cache + prompts + sequenceBytes(config, promptTokens));
}

/** What scoring a prompt takes beside the model. */
export function scoringBytes(config: ModelConfig, tokens: number): number {
  const logits = 3 * Math.min(tokens, scoredPositions) * config.vocabSize;
  return Math.round(sequenceBytes(config, tokens) + float * (2 * tokens * config.hiddenSize + arenaOverhead * logits));
}

/** Keys and values of a token in all layers. */
function cacheBytesPerPosition({ layers, kvHeads, headDim }: ModelConfig): number {
  return 2 * layers * kvHeads * headDim * float;
}

/** A prompt on its way through the layers, one at a time. */
function sequenceBytes(config: ModelConfig, tokens: number): number {
  const layer = tokens * (layerWidth(config, keptForm) + workingWidth(config, tokens, keptForm));
  return float * (arenaOverhead * layer + maskNumbers(config, tokens, keptForm));
}

function parameterCount(config: ModelConfig): number {
  return weightSpecs(config).reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
}

/** Of all layers. */
function linearCount(config: ModelConfig): number {
  const linear = weightSpecs(config).filter(({ role }) => role === 'linear');
  return linear.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
}

function trainedCount(config: ModelConfig, training: TrainingSpec): number {
  if (training.type === 'full') return parameterCount(config);
  const modules = linearModules(config, training.targetModules);
  return modules.reduce((sum, { inFeatures, outFeatures }) => sum + training.rank * (inFeatures + outFeatures), 0);
}

/** Numbers a token that a layer makes and a backward pass reads again, but for scores and adapters. */
function layerWidth(config: ModelConfig, { blocks, attention: again }: SequenceForm): number {
  const { intermediateSize, heads, kvHeads, headDim, hiddenAct } = config;
  const [queries, keys] = [heads * headDim, kvHeads * headDim];
  // Queries and what attention gives for them; keys and values, once for each block of queries that sees them where they are kept so.
  const attention = 2 * queries + (again ? 2 : blocks + 1) * keys;
  // Gate before and after its activation, up, their product; gelu is made of three parts more.
  const fed = (hiddenAct === 'silu' ? 4 : 7) * intermediateSize;
  return normWidths(config) + attention + fed;
}

/** The share of S² that blocks of queries see, each of the keys up to its own end. */
const seenShare = ({ blocks }: SequenceForm) => (blocks + 1) / (2 * blocks);

/** Scores a token and layer. */
function keptScores({ heads }: ModelConfig, S: number, form: SequenceForm): number {
  return heads * S * seenShare(form);
}

/** Masks of one row: the one term that grows with the square of its length. At 4,096 tokens of SmolLM2-135M it is about one hundredth of the whole. */
function maskNumbers(config: ModelConfig, S: number, form: SequenceForm): number {
  return maskCopies(config) * seenShare(form) * S ** 2;
}

/** Numbers a token while one layer is computed, or its gradient: those of the MLP, and some times the scores of the longest block. */
function workingWidth({ intermediateSize, heads }: ModelConfig, S: number, { blocks }: SequenceForm): number {
  return 6 * intermediateSize + (4 * heads * S) / blocks;
}

/** Numbers a token in the head: its logits twice or, for a frozen head with many targets, their rows of it. A trained one keeps more. */
function headWidth(
  { vocabSize, hiddenSize }: ModelConfig,
  training: TrainingSpec,
  { targets, backward }: Pick<BatchSize, 'targets' | 'backward'>,
): number {
  const isTrained = training.type === 'full' || training.targetModules.includes('lm_head');
  if (!isTrained) return Math.max(2 * vocabSize, backward ? 2 * targets * hiddenSize : 0);
  return (backward ? 4 + 2 * targets : 3) * vocabSize;
}

/** Numbers of a layer's norms: widths of what they read and give, of the whole stream or of each head. */
function normWidths(config: ModelConfig): number {
  const { heads, kvHeads, headDim } = config;
  const widths = weightSpecs(config)
    .filter(({ role, layer }) => role === 'norm' && layer === 0)
    .map(({ module, shape }) => {
      if (module === 'q_norm') return heads * headDim;
      return module === 'k_norm' ? kvHeads * headDim : shape[0]!;
    });
  return 2 * widths.reduce((sum, width) => sum + width, 0);
}

/** All that an engine holds whatever is asked of a session: for the plan of its micro-batches. */
export interface HeldMemory {
  readonly config: ModelConfig;
  readonly training: TrainingSpec;
  /** Keys and values of rows, and of prompts used lately. */
  readonly cacheBytes: number;
  readonly packWeights: boolean;
  /** `float32` by default. */
  readonly samplerPrecision?: SamplerPrecision | undefined;
}

export function heldBytes({
  config,
  training,
  cacheBytes,
  packWeights,
  samplerPrecision = 'float32',
}: HeldMemory): number {
  return (
    modelBytes(config) +
    (packWeights ? packedTrainingBytes(config) : 0) +
    allDecodingBytes(config, training, samplerPrecision) +
    sessionBytes(config, training) +
    keptVersionsBytes(config, training, samplerPrecision) +
    cacheBytes
  );
}
