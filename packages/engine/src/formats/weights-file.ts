/**
 * All weights of a model in one float32 file, laid out so that the runtime can map it and read neighbours as one matrix:
 * q, k, v of a layer back to back, likewise gate and up, so that [q; k; v] is a tensor [q+k+v rows, in] at one offset.
 */
import { createHash } from 'node:crypto';
import { mkdir, open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { complaint } from '@loopwright/protocol';
import type { ModelConfig } from '../local/models/config.js';
import { type WeightSpec, weightSpecs } from '../local/models/weight-names.js';
import { asWriteError, removeAbandonedWrites, type WriteOptions, writeFileAtomically } from './atomic-file.js';
import type { ModelSource } from './model-source.js';
import { elementCount } from './numbers.js';
import { bytesOf, readFully } from './source-file.js';

/** Counted up when the layout changes, so that no older cached file is taken for a new one. */
const layoutVersion = 1;

/** Memory pages; external data that starts on one can be mapped. */
export const alignmentBytes = 4096;

export interface WeightEntry {
  /** Bytes from the start of the file; a multiple of 4096 but for the later members of a fused group. */
  readonly offset: number;
  readonly shape: readonly number[];
}

export interface WeightsLayout {
  readonly sizeBytes: number;
  /**
   * By the name in Hugging Face files, and by fused name: `layers.0.qkv`, `layers.0.qkv.bias`, `layers.0.gate_up`. Fused entries
   * cover the same bytes as their members.
   */
  readonly tensors: ReadonlyMap<string, WeightEntry>;
}

export interface WeightsFile extends WeightsLayout {
  readonly path: string;
}

/** Where each tensor of a model lies in its weights file. */
export function layoutWeights(config: ModelConfig): WeightsLayout {
  const tensors = new Map<string, WeightEntry>();
  let end = 0;
  let group: string | undefined;
  for (const { name, shape, fused } of weightSpecs(config)) {
    const continues = fused !== undefined && fused === group;
    const offset = continues ? end : Math.ceil(end / alignmentBytes) * alignmentBytes;
    tensors.set(name, { offset, shape });
    if (fused !== undefined) {
      const before = continues ? tensors.get(fused) : undefined;
      const [rows = 0, ...rest] = shape;
      const [rowsBefore = 0] = before?.shape ?? [];
      tensors.set(fused, { offset: before?.offset ?? offset, shape: [rowsBefore + rows, ...rest] });
    }
    group = fused;
    end = offset + 4 * elementCount(shape);
  }
  return { sizeBytes: end, tensors };
}

/**
 * The weights file of a model: taken from the cache when it is there whole, written into it otherwise.
 * It is keyed by the names, sizes and modification times of the model's files, so a changed model gets a new one.
 * Processes may do this at once: each writes its own copy, and one of the equal copies stays.
 *
 * @throws `model_invalid` for NaN or infinite weights (naming the tensor) and for files cut since they were opened;
 *   `disk_full`, `cancelled`; no file is left behind in any of these cases
 */
export async function cacheWeightsFile(
  model: ModelSource,
  { cacheDirectory, ...options }: WriteOptions & { readonly cacheDirectory: string },
): Promise<WeightsFile> {
  const layout = layoutWeights(model.config);
  const name = `weights-${fingerprint(model)}.bin`;
  const path = join(cacheDirectory, name);
  // It got its name when it was whole, so the size is enough to know it by.
  const cachedBytes = (await stat(path).catch(() => undefined))?.size;
  if (cachedBytes === layout.sizeBytes) return { path, ...layout };

  try {
    await mkdir(cacheDirectory, { recursive: true });
    await removeAbandonedWrites(cacheDirectory, { prefix: 'weights-' });
  } catch (error) {
    throw asWriteError(error, cacheDirectory);
  }
  // One scratch array of the largest size serves all tensors.
  const scratch = new Float32Array(Math.max(...model.specs.map(({ shape }) => elementCount(shape))));
  const file: WeightsFile = { path, ...layout };
  await writeTensors(file, {
    ...options,
    specs: model.specs,
    read: (spec) =>
      model.read(spec.name, {
        into: scratch.subarray(0, elementCount(spec.shape)),
        ...(options.signal === undefined ? {} : { signal: options.signal }),
      }),
  });
  return file;
}

/**
 * Writes a weights file from arrays in memory, atomically; fused names among them are not looked at.
 *
 * @throws `invalid_argument` for a tensor that is missing or of another length; `disk_full`, `cancelled`
 */
export async function writeWeightsFile(
  weights: ReadonlyMap<string, Float32Array>,
  { path, config, ...options }: WriteOptions & { readonly path: string; readonly config: ModelConfig },
): Promise<WeightsFile> {
  const file: WeightsFile = { path, ...layoutWeights(config) };
  const specs = weightSpecs(config);
  for (const spec of specs) requireWeight(weights, spec);
  await writeTensors(file, { ...options, specs, read: async (spec) => requireWeight(weights, spec) });
  return file;
}

/**
 * All weights in memory: one buffer for the whole file, and views on it by every name of the layout, fused ones too.
 * A change through one view shows in the others. The caller owns it.
 *
 * @throws `model_invalid` when the file is missing or shorter than its layout
 */
export async function readWeights(
  file: WeightsFile,
  { signal }: { readonly signal?: AbortSignal } = {},
): Promise<Map<string, Float32Array>> {
  const buffer = new ArrayBuffer(file.sizeBytes);
  let handle: Awaited<ReturnType<typeof open>>;
  try {
    handle = await open(file.path, 'r');
  } catch (cause) {
    throw complaint({
      code: 'model_invalid',
      field: file.path,
      expected: 'a readable weights file',
      got: 'none',
      cause,
    });
  }
  try {
    await readFully(handle, new Uint8Array(buffer), 0, { path: file.path, signal });
  } finally {
    await handle.close();
  }
  return viewWeights(buffer, file);
}

/** Views on a buffer laid out as a weights file, by name. */
export function viewWeights(buffer: ArrayBuffer, layout: WeightsLayout): Map<string, Float32Array> {
  const views = new Map<string, Float32Array>();
  for (const [name, { offset, shape }] of layout.tensors) {
    views.set(name, new Float32Array(buffer, offset, elementCount(shape)));
  }
  return views;
}

/** A value array of a model, checked for its length. @throws `invalid_argument` */
export function requireWeight(weights: ReadonlyMap<string, Float32Array>, { name, shape }: WeightSpec): Float32Array {
  const values = weights.get(name);
  if (values?.length !== elementCount(shape)) {
    throw complaint({
      field: name,
      expected: `${elementCount(shape)} values`,
      got: values === undefined ? 'no such tensor' : `${values.length}`,
    });
  }
  return values;
}

async function writeTensors(
  { path, sizeBytes, tensors }: WeightsFile,
  {
    specs,
    read,
    ...options
  }: WriteOptions & {
    readonly specs: readonly WeightSpec[];
    readonly read: (spec: WeightSpec) => Promise<Float32Array>;
  },
): Promise<void> {
  const padding = new Uint8Array(alignmentBytes);
  await writeFileAtomically(
    path,
    async (append) => {
      let end = 0;
      for (const spec of specs) {
        const offset = tensors.get(spec.name)!.offset; // The layout was made from the same specs.
        if (offset > end) await append(padding.subarray(0, offset - end));
        await append(bytesOf(await read(spec)));
        end = offset + 4 * elementCount(spec.shape);
      }
    },
    { ...options, sizeBytes },
  );
}

function fingerprint({ directory, config, sources }: ModelSource): string {
  const identity = JSON.stringify({ layoutVersion, directory, config, sources });
  return createHash('sha256').update(identity).digest('hex').slice(0, 32);
}
