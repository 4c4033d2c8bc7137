/** Writes a model as a GGUF file: matrices in half precision or in blocks of 8 bits, norms and biases in float32. */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { complaint } from '@loopwright/protocol';
import { architectures } from '../../local/models/architectures.js';
import type { WeightSpec } from '../../local/models/weight-names.js';
import { asWriteError, type WriteOptions, writeFileAtomically } from '../atomic-file.js';
import type { ModelSource } from '../model-source.js';
import { bytesOf } from '../source-file.js';
import { ropeFactorsTensor } from './config.js';
import { configMetadata, type GgufType, ggufContextLength } from './config-metadata.js';
import { layOutGguf, type TensorToPlace } from './header-writer.js';
import { largestHalf, toHalf, toQ80 } from './quantize.js';
import { ropeFactors } from './rope-factors.js';
import { headRows, joinRotaryPairs } from './rotary-rows.js';
import { ggufTensorName } from './tensor-names.js';
import { tokenizerMetadata } from './tokenizer-metadata.js';

export interface WriteGgufOptions extends WriteOptions {
  readonly type: GgufType;
  /** What the file calls the model. */
  readonly name: string;
}

export interface WrittenGguf {
  readonly sizeBytes: number;
  /** Tokens that the file may be used with. */
  readonly contextLength: number;
  readonly hasTokenizer: boolean;
}

/**
 * Writes the file atomically, one tensor at a time in memory. Rows that no whole blocks of 32 fill are written in half precision, as
 * the converter of llama.cpp does.
 *
 * @throws `unsupported_model` for an architecture or tokenizer that such files can't say; `model_invalid` as ModelSource.read;
 *   `invalid_argument` for a value beyond half precision; `disk_full`, `cancelled`
 */
export async function writeGguf(
  path: string,
  model: ModelSource,
  { type, name, ...options }: WriteGgufOptions,
): Promise<WrittenGguf> {
  const { config, specs } = model;
  const tokenizer = await tokenizerMetadata(model.files, config);
  const metadata = new Map([...configMetadata(config, { name, type }), ...tokenizer]);
  const tensors = specs.map((spec) => ({ spec, place: placeOf(spec, type) }));
  const factors = config.ropeScaling === null ? undefined : ropeFactors(config, config.ropeScaling);
  const extra: readonly TensorToPlace[] =
    factors === undefined ? [] : [{ name: ropeFactorsTensor, type: 'F32', shape: [factors.length] }];
  const layout = layOutGguf(metadata, [...tensors.map(({ place }) => place), ...extra]);
  const interleaved = architectures[config.architecture].gguf?.interleaved === true;
  const readOptions = options.signal === undefined ? {} : { signal: options.signal };
  try {
    await mkdir(dirname(path), { recursive: true });
  } catch (error) {
    throw asWriteError(error, path);
  }
  await writeFileAtomically(
    path,
    async (append) => {
      await append(layout.head);
      for (const [i, { spec, place }] of tensors.entries()) {
        const values = await model.read(spec.name, readOptions);
        const rows = interleaved ? headRows(config, spec.name) : undefined;
        if (rows !== undefined) joinRotaryPairs(values, rows);
        await append(encode(values, place));
        await append(new Uint8Array(layout.tensors[i]!.padding)); // One for each tensor.
      }
      if (factors !== undefined) {
        await append(bytesOf(factors));
        await append(new Uint8Array(layout.tensors.at(-1)!.padding)); // The last is theirs.
      }
    },
    { ...options, sizeBytes: layout.sizeBytes },
  );
  return {
    sizeBytes: layout.sizeBytes,
    contextLength: ggufContextLength(config),
    hasTokenizer: tokenizer.has('tokenizer.ggml.tokens'),
  };
}

function placeOf({ name, shape }: WeightSpec, type: GgufType): TensorToPlace {
  const [width] = shape.toReversed();
  const isMatrix = shape.length > 1;
  const quantized = type === 'q8_0' && width !== undefined && width % 32 === 0;
  return { name: ggufTensorName(name), shape, type: isMatrix ? (quantized ? 'Q8_0' : 'F16') : 'F32' };
}

function encode(values: Float32Array, { name, type }: TensorToPlace): Uint8Array {
  if (type === 'F32') return bytesOf(values);
  if (type === 'Q8_0') return toQ80(values);
  const beyond = values.findIndex((value) => Math.abs(value) > largestHalf);
  if (beyond >= 0) {
    throw complaint({
      field: 'type',
      expected: `values up to ${largestHalf} for f16`,
      got: `${values[beyond]} in ${name}`,
      remedy: 'export as q8_0',
    });
  }
  return bytesOf(toHalf(values));
}
