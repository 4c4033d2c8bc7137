/** LoRA adapters in the layout of the PEFT library: adapter_config.json and adapter_model.safetensors, read and written. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import {
  complaint,
  type LoopwrightError,
  pinnedName,
  splitPinned,
  type TargetModule,
  targetModules,
} from '@loopwright/protocol';
import type { ModelConfig } from '../local/models/config.js';
import { linearModules } from '../local/models/weight-names.js';
import { asWriteError, type WriteOptions, writeJsonAtomically } from './atomic-file.js';
import { readJsonObject } from './model-directory.js';
import { firstNonFinite, showShape } from './numbers.js';
import { type NamedTensor, readSafetensors, type TensorToWrite, writeSafetensors } from './safetensors.js';

const configFile = 'adapter_config.json';
const weightsFile = 'adapter_model.safetensors';
export const adapterFiles = [configFile, weightsFile] as const;

/** What an adapter adds to one linear layer: W + scale · B·A. */
export interface LowRankPair {
  /** [rank, inFeatures] */
  readonly A: Float32Array;
  /** [outFeatures, rank] */
  readonly B: Float32Array;
  readonly inFeatures: number;
  readonly outFeatures: number;
}

export interface AdapterWeights {
  readonly rank: number;
  readonly alpha: number;
  /** alpha / rank, or alpha / √rank for an adapter that was trained so (rsLoRA). */
  readonly scale: number;
  readonly targetModules: readonly TargetModule[];
  /** By module key: `layers.0.q_proj`, `lm_head`. */
  readonly tensors: ReadonlyMap<string, LowRankPair>;
}

/** Kinds of PEFT adapter that compute something else than W + scale · B·A, by the config field that switches them on. */
const otherKinds = [
  'use_dora',
  'use_qalora',
  'use_bdlora',
  'lora_bias',
  'fan_in_fan_out',
  'modules_to_save',
  'rank_pattern',
  'alpha_pattern',
  'layers_to_transform',
  'layer_replication',
  'target_parameters',
  'trainable_token_indices',
  'alora_invocation_tokens',
  'megatron_config',
  'arrow_config',
] as const;

/** Initialisations that change the base weights too, so that the adapter alone is not the trained model. */
const initsThatChangeBase = /^(pissa|olora|corda|loftq)/;

/**
 * Reads a PEFT directory.
 *
 * @param model checks that the adapter fits this model: every layer of the target modules, with its widths
 * @throws `model_invalid` for missing, cut or inconsistent files and NaN or infinity; `checkpoint_mismatch` when it does not fit
 *   the model, or is of a kind that is not plain LoRA (the field that says so is named)
 */
export async function readAdapter(
  directory: string,
  { model, signal }: { readonly model?: ModelConfig; readonly signal?: AbortSignal } = {},
): Promise<AdapterWeights> {
  const json = await readJsonObject(join(directory, configFile));
  refuseOtherKinds(json);
  const rank = readNumber(json, 'r');
  if (!Number.isInteger(rank)) throw malformed('r', 'a whole number', `${rank}`);
  const alpha = readNumber(json, 'lora_alpha');
  const modules = readTargetModules(json.target_modules);
  const files = await readSafetensors(join(directory, weightsFile), signal === undefined ? {} : { signal });
  const tensors = pairTensors(files, { rank, modules });
  const scale = json.use_rslora === true ? alpha / Math.sqrt(rank) : alpha / rank;
  const adapter: AdapterWeights = { rank, alpha, scale, targetModules: modules, tensors };
  if (model !== undefined) requireAdapterFits(adapter, model);
  return adapter;
}

/** What an adapter says its base model is: a name of the hub, with its revision where it says that, or a path. @throws `model_invalid` without a readable config */
export async function adapterBaseModel(directory: string): Promise<string | undefined> {
  const { base_model_name_or_path: name, revision } = await readJsonObject(join(directory, configFile));
  if (typeof name !== 'string' || name === '') return undefined;
  const pinned =
    typeof revision === 'string' && revision !== '' ? pinnedName({ repository: name, commit: revision }) : name;
  return splitPinned(pinned).repository === name ? pinned : name; // a path has no revision
}

/**
 * Writes a PEFT directory that PEFT, transformers and inference servers load; the directory is made where there is none.
 *
 * @param baseModel what `base_model_name_or_path` will say; of `org/name@commit` the commit becomes `revision`, which PEFT loads the base by
 * @returns the names of the files written
 * @throws `invalid_argument` when scale is neither alpha / rank nor alpha / √rank, or a length is wrong; `disk_full`, `cancelled`
 */
export async function writeAdapter(
  directory: string,
  adapter: AdapterWeights,
  { baseModel, ...options }: WriteOptions & { readonly baseModel: string },
): Promise<readonly string[]> {
  const { rank, alpha, tensors } = adapter;
  const { repository, revision } = splitPinned(baseModel);
  const list: TensorToWrite[] = [];
  for (const [key, { A, B, inFeatures, outFeatures }] of tensors) {
    const path = peftPath(key);
    list.push({ name: `${path}.lora_A.weight`, shape: [rank, inFeatures], data: A });
    list.push({ name: `${path}.lora_B.weight`, shape: [outFeatures, rank], data: B });
  }
  const json = {
    peft_type: 'LORA',
    task_type: 'CAUSAL_LM',
    base_model_name_or_path: repository,
    revision: revision ?? null,
    r: rank,
    lora_alpha: alpha,
    lora_dropout: 0,
    use_rslora: isRankStabilized(adapter),
    use_dora: false,
    bias: 'none',
    fan_in_fan_out: false,
    init_lora_weights: true,
    inference_mode: true,
    target_modules: [...adapter.targetModules].sort(),
    modules_to_save: null,
    rank_pattern: {},
    alpha_pattern: {},
  };
  try {
    await mkdir(directory, { recursive: true });
  } catch (error) {
    throw asWriteError(error, directory);
  }
  await writeSafetensors(join(directory, weightsFile), list, options);
  await writeJsonAtomically(join(directory, configFile), json, options);
  return [configFile, weightsFile];
}

/** Multiply-adds between two yields to the event loop: some tens of milliseconds. */
const multiplyAddsPerSlice = 4_000_000;

/**
 * Adds an adapter's product to a linear layer's weight in place: W += scale · B·A, each sum in float64 before it is rounded.
 * Yields to the event loop every few tens of milliseconds.
 *
 * @param weight [outFeatures, inFeatures]
 */
export async function addLowRankProduct(
  weight: Float32Array,
  { A, B, inFeatures, outFeatures, scale }: LowRankPair & { readonly scale: number },
): Promise<void> {
  const rank = A.length / inFeatures;
  const wideA = Float64Array.from(A);
  const row = new Float64Array(inFeatures);
  const rowsPerSlice = Math.max(1, Math.floor(multiplyAddsPerSlice / A.length));
  for (let out = 0; out < outFeatures; out++) {
    if (out % rowsPerSlice === rowsPerSlice - 1) await setImmediate();
    const factor = (k: number) => scale * (k < rank ? B[out * rank + k]! : 0);
    row.fill(0);
    // Four ranks at a time: half the time of one by one, which is bound by reading and writing the row.
    for (let k = 0; k < rank; k += 4) {
      const [f0, f1, f2, f3] = [factor(k), factor(k + 1), factor(k + 2), factor(k + 3)];
      const start = (j: number) => Math.min(j, rank - 1) * inFeatures; // Past the last rank the factor is 0.
      const [s0, s1, s2, s3] = [start(k), start(k + 1), start(k + 2), start(k + 3)];
      for (let i = 0; i < inFeatures; i++) {
        row[i]! += f0 * wideA[s0 + i]! + f1 * wideA[s1 + i]! + f2 * wideA[s2 + i]! + f3 * wideA[s3 + i]!;
      }
    }
    const start = out * inFeatures;
    for (let i = 0; i < inFeatures; i++) weight[start + i]! += row[i]!;
  }
}

/** `base_model.model.model.layers.0.self_attn.q_proj` for `layers.0.q_proj`. */
function peftPath(key: string): string {
  if (key === 'lm_head') return 'base_model.model.lm_head';
  const [, layer, module] = /^layers\.(\d+)\.(\w+)$/.exec(key) ?? [];
  if (layer === undefined || module === undefined) {
    throw complaint({ field: key, expected: 'a module key such as layers.0.q_proj', got: 'another form' });
  }
  return `base_model.model.model.layers.${layer}.${parentOf(module)}.${module}`;
}

function parentOf(module: string): 'self_attn' | 'mlp' {
  return ['q_proj', 'k_proj', 'v_proj', 'o_proj'].includes(module) ? 'self_attn' : 'mlp';
}

const peftName =
  /^base_model\.model\.(?:(lm_head)|model\.layers\.(0|[1-9]\d{0,3})\.(self_attn|mlp)\.(\w+))\.lora_([AB])\.weight$/;

function pairTensors(
  files: ReadonlyMap<string, NamedTensor>,
  { rank, modules }: { readonly rank: number; readonly modules: readonly TargetModule[] },
): Map<string, LowRankPair> {
  const halves = new Map<string, { A?: NamedTensor; B?: NamedTensor }>();
  for (const tensor of files.values()) {
    const [, head, layer, parent, module = head, side] = peftName.exec(tensor.name) ?? [];
    const target = modules.find((name) => name === module);
    if (module === undefined || target === undefined || (head === undefined && parent !== parentOf(module))) {
      throw damaged(tensor.name, 'a lora_A or lora_B weight of one of the target modules', 'another name');
    }
    const bad = firstNonFinite(tensor.data);
    if (bad >= 0) throw damaged(tensor.name, 'finite values', `${tensor.data[bad]} at position ${bad}`);
    const key = head ?? `layers.${layer}.${module}`;
    halves.set(key, { ...halves.get(key), [side === 'A' ? 'A' : 'B']: tensor });
  }
  const pairs = new Map<string, LowRankPair>();
  for (const [key, { A, B }] of halves) {
    const present = A ?? B!; // One of them made the entry.
    if (A === undefined || B === undefined) throw damaged(present.name, 'both lora_A and lora_B', 'one of them');
    const [rankA, inFeatures] = A.shape;
    const [outFeatures, rankB] = B.shape;
    if (A.shape.length !== 2 || rankA !== rank || inFeatures === undefined) {
      throw damaged(A.name, `shape [${rank}, in]`, showShape(A.shape));
    }
    if (B.shape.length !== 2 || rankB !== rank || outFeatures === undefined) {
      throw damaged(B.name, `shape [out, ${rank}]`, showShape(B.shape));
    }
    pairs.set(key, { A: A.data, B: B.data, inFeatures, outFeatures });
  }
  return pairs;
}

/**
 * Checks that an adapter has a pair for every layer of its target modules in this model, of its widths, and no others.
 *
 * @throws `checkpoint_mismatch`, naming the layer
 */
export function requireAdapterFits({ targetModules: modules, tensors }: AdapterWeights, model: ModelConfig): void {
  const linears = linearModules(model, modules);
  const mismatch = (key: string, expected: string, got: string) =>
    complaint({
      code: 'checkpoint_mismatch',
      field: key,
      expected,
      got,
      remedy: 'use an adapter that was trained on this model',
    });
  for (const { key, inFeatures, outFeatures } of linears) {
    const pair = tensors.get(key);
    if (pair === undefined) throw mismatch(key, 'an adapter for every layer of the target modules', 'none');
    if (pair.inFeatures !== inFeatures || pair.outFeatures !== outFeatures) {
      throw mismatch(key, `widths ${inFeatures} to ${outFeatures}`, `${pair.inFeatures} to ${pair.outFeatures}`);
    }
  }
  const known = new Set(linears.map(({ key }) => key));
  for (const key of tensors.keys()) {
    if (!known.has(key)) throw mismatch(key, `a layer of the model (it has ${model.layers})`, 'a layer beyond');
  }
}

function refuseOtherKinds(json: Readonly<Record<string, unknown>>): void {
  if (json.peft_type !== 'LORA') throw otherKind('peft_type', 'LORA', json.peft_type);
  if (json.task_type !== undefined && json.task_type !== null && json.task_type !== 'CAUSAL_LM') {
    throw otherKind('task_type', 'CAUSAL_LM', json.task_type);
  }
  if (json.bias !== undefined && json.bias !== 'none') throw otherKind('bias', 'none', json.bias);
  for (const field of otherKinds) if (isSwitchedOn(json[field])) throw otherKind(field, 'nothing', json[field]);
  const init = json.init_lora_weights;
  if (typeof init === 'string' && initsThatChangeBase.test(init)) throw otherKind('init_lora_weights', 'true', init);
}

function isSwitchedOn(value: unknown): boolean {
  if (value === undefined || value === null || value === false) return false;
  return typeof value === 'object' ? Object.keys(value).length > 0 : true;
}

function readTargetModules(value: unknown): readonly TargetModule[] {
  if (value === 'all-linear') return targetModules.filter((name) => name !== 'lm_head');
  if (!Array.isArray(value) || value.length === 0) {
    throw malformed('target_modules', 'a list of module names', typeof value === 'string' ? 'a pattern' : typeof value);
  }
  for (const name of value) {
    if (!targetModules.some((target) => target === name)) {
      throw malformed(
        'target_modules',
        `names among ${targetModules.join(', ')}`,
        typeof name === 'string' ? name : typeof name,
      );
    }
  }
  return targetModules.filter((name) => value.includes(name));
}

function readNumber(json: Readonly<Record<string, unknown>>, field: string): number {
  const value = json[field];
  if (typeof value === 'number' && Number.isFinite(value) && value > 0) return value;
  throw malformed(field, 'a number above 0', typeof value === 'number' ? `${value}` : typeof value);
}

function isRankStabilized({ rank, alpha, scale }: AdapterWeights): boolean {
  const close = (expected: number) => Math.abs(scale - expected) <= 1e-6 * Math.abs(expected);
  if (close(alpha / rank)) return false;
  if (close(alpha / Math.sqrt(rank))) return true;
  throw complaint({ field: 'scale', expected: `alpha / rank (${alpha / rank}) or alpha / √rank`, got: `${scale}` });
}

function otherKind(field: string, expected: string, got: unknown): LoopwrightError {
  return complaint({
    code: 'checkpoint_mismatch',
    field: `${configFile}: ${field}`,
    expected: `${expected} (plain LoRA)`,
    got: typeof got === 'object' ? 'a value' : (JSON.stringify(got)?.slice(0, 80) ?? 'nothing'),
    remedy: 'merge this adapter into its base with the library that made it, and load the merged model',
  });
}

function malformed(field: string, expected: string, got: string): LoopwrightError {
  return complaint({ code: 'model_invalid', field: `${configFile}: ${field}`, expected, got: got.slice(0, 80) });
}

function damaged(name: string, expected: string, got: string): LoopwrightError {
  return complaint({
    code: 'model_invalid',
    field: `${weightsFile}: ${JSON.stringify(name.slice(0, 120))}`,
    expected,
    got,
    remedy: 'check that adapter_config.json belongs to these weights, or save the adapter again',
  });
}
