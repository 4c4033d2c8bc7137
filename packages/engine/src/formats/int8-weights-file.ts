/**
 * The factors of a sampler's products, rounded to int8, in a file beside the float32 weights that they were made from: q, k, v as one, gate
 * and up as one, as decoding reads them, and the head. A weight [out, in] lies transposed, [in, out], with a scale for each output: its
 * largest magnitude / 127.
 */
import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { ModelConfig } from '../local/models/config.js';
import { headWeightName, weightSpecs } from '../local/models/weight-names.js';
import { asWriteError, removeAbandonedWrites, type WriteOptions, writeFileAtomically } from './atomic-file.js';
import { elementCount } from './numbers.js';
import { bytesOf } from './source-file.js';
import { alignmentBytes, type WeightEntry, type WeightsFile } from './weights-file.js';

/** Counted up when the layout or the rounding changes. */
const layoutVersion = 1;
/** The largest magnitude of a rounded number. */
const largestStep = 127;

export interface Int8Entry {
  /** int8 [in, out]. */
  readonly values: WeightEntry;
  /** float32 [out]. */
  readonly scales: WeightEntry;
}

export interface Int8WeightsFile {
  readonly path: string;
  readonly sizeBytes: number;
  readonly tensors: ReadonlyMap<string, Int8Entry>;
}

/** The weights that are rounded, by the names that weights files have for them. */
export function int8WeightNames(config: ModelConfig): readonly string[] {
  const linear = weightSpecs(config).flatMap(({ name, role, fused }) => (role === 'linear' ? [fused ?? name] : []));
  return [...new Set(linear), headWeightName(config)];
}

/**
 * Taken from the cache when it is there whole, written into it otherwise; as with float32 weights, processes may do this at once.
 *
 * @param weights those of the file, in memory
 * @throws `disk_full`, `cancelled`
 */
export async function cacheInt8Weights(
  { path: float32Path, tensors }: WeightsFile,
  {
    config,
    weights,
    ...options
  }: WriteOptions & { readonly config: ModelConfig; readonly weights: ReadonlyMap<string, Float32Array> },
): Promise<Int8WeightsFile> {
  const names = int8WeightNames(config);
  const file = {
    path: `${float32Path.slice(0, -'.bin'.length)}-int8-${layoutVersion}.bin`,
    ...layout(names.map((name) => [name, tensors.get(name)!.shape] as const)), // both name what a model has
  };
  const cachedBytes = (await stat(file.path).catch(() => undefined))?.size;
  if (cachedBytes === file.sizeBytes) return file;
  const directory = dirname(file.path);
  try {
    await removeAbandonedWrites(directory, { prefix: 'weights-' });
  } catch (error) {
    throw asWriteError(error, directory);
  }
  const padding = new Uint8Array(alignmentBytes);
  await writeFileAtomically(
    file.path,
    async (append) => {
      let end = 0;
      const appendAt = async (offset: number, bytes: Uint8Array) => {
        if (offset > end) await append(padding.subarray(0, offset - end));
        await append(bytes);
        end = offset + bytes.byteLength;
      };
      for (const [name, entry] of file.tensors) {
        const { values, scales } = roundToInt8(weights.get(name)!, entry.scales.shape[0]!); // as in the layout
        await appendAt(entry.values.offset, bytesOf(values));
        await appendAt(entry.scales.offset, bytesOf(scales));
      }
    },
    { ...options, sizeBytes: file.sizeBytes },
  );
  return file;
}

function layout(shapes: readonly (readonly [string, readonly number[]])[]): Omit<Int8WeightsFile, 'path'> {
  const tensors = new Map<string, Int8Entry>();
  let end = 0;
  const place = (shape: readonly number[], width: number): WeightEntry => {
    const offset = Math.ceil(end / alignmentBytes) * alignmentBytes;
    end = offset + width * elementCount(shape);
    return { offset, shape };
  };
  for (const [name, shape] of shapes) {
    const [out, inner] = [shape[0]!, shape[1]!]; // linear weights and heads have two axes
    tensors.set(name, { values: place([inner, out], 1), scales: place([out], 4) });
  }
  return { sizeBytes: end, tensors };
}

/** Adding and taking away what leaves no room for fractions rounds half to even. */
const roundingShift = 1.5 * 2 ** 52;
/** Outputs that are written side by side, so that the strides of the transposition stay within the processor's caches. */
const outputsAtOnce = 64;

/** Rounds the rows of a weight [out, in], each by its own scale, and transposes them. */
export function roundToInt8(
  weight: Float32Array,
  outputs: number,
): { readonly values: Int8Array; readonly scales: Float32Array } {
  const inner = weight.length / outputs;
  const scales = new Float32Array(outputs);
  for (let n = 0; n < outputs; n++) {
    let largest = 0;
    for (let at = n * inner; at < (n + 1) * inner; at++) largest = Math.max(largest, Math.abs(weight[at]!));
    scales[n] = largest / largestStep;
  }
  const values = new Int8Array(weight.length);
  for (let first = 0; first < outputs; first += outputsAtOnce) {
    const end = Math.min(outputs, first + outputsAtOnce);
    for (let k = 0; k < inner; k++) {
      for (let n = first; n < end; n++) {
        const scale = scales[n]!;
        if (scale === 0) continue;
        const rounded = weight[n * inner + k]! / scale + roundingShift - roundingShift;
        values[k * outputs + n] = Math.max(-largestStep, Math.min(largestStep, rounded));
      }
    }
  }
  return { values, scales };
}
