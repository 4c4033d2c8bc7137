/**
 * The head of a GGUF file: magic, version, metadata by key, then name, shape, type and place of each tensor. All little-endian.
 * Files come from outside, so every count and length is checked against the size of the file before memory is taken for it.
 *
 * @see https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
 */

import { basename } from 'node:path';
import { complaint, type LoopwrightError } from '@loopwright/protocol';
import { elementCount, showShape } from '../numbers.js';
import { cutFile, invalidFile, showName } from '../source-file.js';
import { findTensorType, otherTypeName, readableTypes, type TensorTypeName } from './tensor-types.js';

/** Limits on a head, above any published model: the largest has some 20 MB, 2,000 tensors and 260,000 tokens. */
export const ggufLimits = {
  headerBytes: 256 * 2 ** 20,
  keys: 10_000,
  tensors: 100_000,
  nameBytes: 1024,
  stringBytes: 16 * 2 ** 20,
  arrayLength: 4_000_000,
  alignment: 2 ** 20,
} as const;

export type GgufScalar = number | boolean | string;
export type GgufValue = GgufScalar | readonly GgufScalar[];

export interface GgufTensor {
  readonly name: string;
  readonly type: TensorTypeName;
  /** Rows first, [out, in], as everywhere else; the file has it the other way round. */
  readonly shape: readonly number[];
  /** From the start of the file. */
  readonly offset: number;
  readonly sizeBytes: number;
}

export interface GgufHeader {
  readonly version: number;
  readonly metadata: ReadonlyMap<string, GgufValue>;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
}

/** The head goes on beyond the bytes at hand, though not beyond the file. */
export class NeedsMoreBytes extends Error {}

/** Types of metadata values, by their number in the file. */
export const valueTypes = {
  uint8: 0,
  int8: 1,
  uint16: 2,
  int16: 3,
  uint32: 4,
  int32: 5,
  float32: 6,
  bool: 7,
  string: 8,
  array: 9,
  uint64: 10,
  int64: 11,
  float64: 12,
} as const;

/** Bytes of a value, at least. */
const valueBytes: Readonly<Record<number, number>> = {
  0: 1,
  1: 1,
  2: 2,
  3: 2,
  4: 4,
  5: 4,
  6: 4,
  7: 1,
  8: 8,
  10: 8,
  11: 8,
  12: 8,
};

interface FileFacts {
  readonly path: string;
  readonly fileBytes: number;
}

/**
 * Reads the head of a GGUF file of version 2 or 3.
 *
 * @param bytes the beginning of the file
 * @throws {@link NeedsMoreBytes} when `bytes` ends before the head does and the file goes on; `model_invalid` for another magic or
 *   version, a cut file, a value above {@link ggufLimits}, and tensors that overlap or lie outside the file; `unsupported_model` for
 *   tensors of a type that isn't read
 */
export function parseGgufHeader(bytes: Uint8Array, file: FileFacts): GgufHeader {
  const cursor = new Cursor(bytes, file);
  const { path } = file;
  const magic = cursor.take(4, 'magic');
  if (String.fromCharCode(...magic) !== 'GGUF') {
    const got = `bytes ${[...magic].map((byte) => byte.toString(16).padStart(2, '0')).join(' ')}`;
    throw invalidFile(path, 'magic', 'GGUF, the mark of such a file', got);
  }
  const version = cursor.uint32('version');
  if (version !== 2 && version !== 3) {
    const got = version >>> 24 !== 0 ? 'a big-endian file' : `${version}`;
    throw invalidFile(path, 'version', '2 or 3, little-endian', got);
  }
  const tensorCount = cursor.count('tensor_count', ggufLimits.tensors);
  const keyCount = cursor.count('metadata_kv_count', ggufLimits.keys);
  const metadata = new Map<string, GgufValue>();
  for (let i = 0; i < keyCount; i++) {
    const key = cursor.string(`metadata key ${i}`, ggufLimits.nameBytes);
    if (metadata.has(key)) throw invalidFile(path, showName(key), 'each key once', 'twice');
    metadata.set(key, readValue(cursor, showName(key), path));
  }
  const places: TensorPlace[] = [];
  for (let i = 0; i < tensorCount; i++) places.push(readTensorPlace(cursor, i, path));
  const alignment = metadata.get('general.alignment') ?? 32;
  if (typeof alignment !== 'number' || alignment < 8 || alignment > ggufLimits.alignment || alignment % 8 !== 0) {
    throw invalidFile(path, 'general.alignment', `a multiple of 8 up to ${ggufLimits.alignment}`, `${alignment}`);
  }
  const dataStart = Math.ceil(cursor.position / alignment) * alignment;
  return { version, metadata, tensors: locate(places, { dataStart, alignment, file }) };
}

function readValue(cursor: Cursor, at: string, path: string): GgufValue {
  const type = cursor.uint32(`${at}, type`);
  if (type !== valueTypes.array) return readScalar(cursor, { type, at, path });
  const elementType = cursor.uint32(`${at}, element type`);
  const size = valueBytes[elementType];
  if (size === undefined) {
    throw invalidFile(path, `${at}, element type`, 'a number, text or truth value', `type ${elementType}`);
  }
  const length = cursor.count(`${at}, length`, ggufLimits.arrayLength);
  cursor.requireInFile(length * size, at);
  const values: GgufScalar[] = [];
  for (let i = 0; i < length; i++) values.push(readScalar(cursor, { type: elementType, at, path }));
  return values;
}

function readScalar(
  cursor: Cursor,
  { type, at, path }: { readonly type: number; readonly at: string; readonly path: string },
): GgufScalar {
  if (type === valueTypes.string) return cursor.string(at, ggufLimits.stringBytes);
  const size = valueBytes[type];
  if (size === undefined) throw invalidFile(path, `${at}, type`, 'a type of GGUF values (0 to 12)', `${type}`);
  const view = cursor.view(size, at);
  switch (type) {
    case valueTypes.uint8:
      return view.getUint8(0);
    case valueTypes.int8:
      return view.getInt8(0);
    case valueTypes.uint16:
      return view.getUint16(0, true);
    case valueTypes.int16:
      return view.getInt16(0, true);
    case valueTypes.uint32:
      return view.getUint32(0, true);
    case valueTypes.int32:
      return view.getInt32(0, true);
    case valueTypes.float32:
      return shortestDecimal(view.getFloat32(0, true));
    case valueTypes.bool:
      return view.getUint8(0) !== 0;
    case valueTypes.uint64:
      return Number(view.getBigUint64(0, true));
    case valueTypes.int64:
      return Number(view.getBigInt64(0, true));
    default:
      return view.getFloat64(0, true);
  }
}

/** What was meant by a float32: 1e-5, not 0.000009999999747378752. */
function shortestDecimal(value: number): number {
  for (let digits = 1; digits < 9; digits++) {
    const decimal = Number(value.toPrecision(digits));
    if (Math.fround(decimal) === value) return decimal;
  }
  return value;
}

interface TensorPlace {
  readonly name: string;
  readonly type: { readonly name: TensorTypeName };
  readonly shape: readonly number[];
  readonly start: number;
  readonly sizeBytes: number;
}

function readTensorPlace(cursor: Cursor, index: number, path: string): TensorPlace {
  const name = cursor.string(`tensor ${index}, name`, ggufLimits.nameBytes);
  const at = showName(name);
  const dimensions = cursor.uint32(`${at}, n_dims`);
  if (dimensions < 1 || dimensions > 4) throw invalidFile(path, `${at}, n_dims`, '1 to 4', `${dimensions}`);
  const sizes = Array.from({ length: dimensions }, () => cursor.count(`${at}, dims`, Number.MAX_SAFE_INTEGER));
  const shape = sizes.toReversed();
  const typeId = cursor.uint32(`${at}, type`);
  const start = cursor.count(`${at}, offset`, Number.MAX_SAFE_INTEGER);
  const type = findTensorType(typeId);
  if (type === undefined) throw unsupportedType(path, at, typeId);
  const [width = 0] = sizes;
  const values = elementCount(shape);
  if (width === 0 || values === 0 || width % type.blockValues !== 0 || !Number.isSafeInteger(values)) {
    const expected = type.blockValues === 1 ? 'sizes above 0' : `rows of a multiple of ${type.blockValues} values`;
    throw invalidFile(path, `${at}, dims`, `${expected} for ${type.name}`, showShape(shape));
  }
  return { name, type, shape, start, sizeBytes: (values / type.blockValues) * type.blockBytes };
}

function unsupportedType(path: string, at: string, typeId: number): LoopwrightError {
  return complaint({
    code: 'unsupported_model',
    field: `${basename(path)}: ${at}, type`,
    expected: `one of ${readableTypes.join(', ')}`,
    got: otherTypeName(typeId),
    remedy: 'take the file of this model in one of these types, or its Hugging Face directory',
  });
}

function locate(
  places: readonly TensorPlace[],
  { dataStart, alignment, file }: { readonly dataStart: number; readonly alignment: number; readonly file: FileFacts },
): ReadonlyMap<string, GgufTensor> {
  const { path, fileBytes } = file;
  const tensors = new Map<string, GgufTensor>();
  let end = 0;
  for (const { name, type, shape, start, sizeBytes } of places.toSorted((a, b) => a.start - b.start)) {
    const at = showName(name);
    if (tensors.has(name)) throw invalidFile(path, at, 'each tensor once', 'twice');
    if (start % alignment !== 0) throw invalidFile(path, `${at}, offset`, `a multiple of ${alignment}`, `${start}`);
    if (start < end) {
      throw invalidFile(path, `${at}, offset`, `byte ${end} or later`, `${start} (an overlap with another tensor)`);
    }
    end = start + sizeBytes;
    if (dataStart + end > fileBytes) throw cutFile(path, `tensor ${at}`, dataStart + end, fileBytes);
    tensors.set(name, { name, type: type.name, shape, offset: dataStart + start, sizeBytes });
  }
  return tensors;
}

const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads onwards through the beginning of a file. */
class Cursor {
  position = 0;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #file: FileFacts;

  constructor(bytes: Uint8Array, file: FileFacts) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.#file = file;
  }

  /** Refuses what can't be in the file, before anything is made to hold it. */
  requireInFile(length: number, what: string): void {
    const end = this.position + length;
    const { path, fileBytes } = this.#file;
    if (end > fileBytes) throw cutFile(path, what, end, fileBytes);
    if (end > ggufLimits.headerBytes) {
      throw invalidFile(path, what, `a head of at most ${ggufLimits.headerBytes} bytes`, `${end} bytes or more`);
    }
  }

  take(length: number, what: string): Uint8Array {
    this.requireInFile(length, what);
    const end = this.position + length;
    if (end > this.#bytes.byteLength) throw new NeedsMoreBytes();
    const taken = this.#bytes.subarray(this.position, end);
    this.position = end;
    return taken;
  }

  view(length: number, what: string): DataView {
    const taken = this.take(length, what);
    return new DataView(taken.buffer, taken.byteOffset, length);
  }

  uint32(what: string): number {
    this.take(4, what);
    return this.#view.getUint32(this.position - 4, true);
  }

  /** A 64-bit count up to a limit. */
  count(what: string, limit: number): number {
    this.take(8, what);
    const value = this.#view.getBigUint64(this.position - 8, true);
    if (value > BigInt(limit)) throw invalidFile(this.#file.path, what, `at most ${limit}`, `${value}`);
    return Number(value);
  }

  string(what: string, limit: number): string {
    const length = this.count(`${what}, length`, limit);
    const taken = this.take(length, what);
    try {
      return text.decode(taken);
    } catch (cause) {
      throw invalidFile(this.#file.path, what, 'UTF-8', `${length} bytes that are not UTF-8`, cause);
    }
  }
}
