/** The head of a GGUF file of version 3 in bytes. */
import { elementCount } from '../numbers.js';
import { valueTypes } from './header.js';
import { findTensorType, type TensorTypeName, tensorTypeId } from './tensor-types.js';

/** A metadata value with the type that readers expect of its key. */
export type TypedValue =
  | { readonly type: 'uint32' | 'int32' | 'float32'; readonly value: number }
  | { readonly type: 'bool'; readonly value: boolean }
  | { readonly type: 'string'; readonly value: string }
  | { readonly type: 'strings'; readonly value: readonly string[] }
  | { readonly type: 'int32s'; readonly value: readonly number[] };

export interface TensorToPlace {
  readonly name: string;
  readonly type: TensorTypeName;
  /** [out, in] */
  readonly shape: readonly number[];
}

/** Bytes that tensors and their beginning are multiples of. */
export const alignment = 32;

export interface GgufLayout {
  readonly head: Uint8Array;
  /** By tensor, in order: bytes of its values, and of the padding after them. */
  readonly tensors: readonly { readonly sizeBytes: number; readonly padding: number }[];
  readonly sizeBytes: number;
}

/** The head, padded to the first tensor, and the place of each tensor after it. */
export function layOutGguf(metadata: ReadonlyMap<string, TypedValue>, tensors: readonly TensorToPlace[]): GgufLayout {
  const bytes = new ByteList();
  bytes.ascii('GGUF');
  bytes.uint32(3);
  bytes.uint64(tensors.length);
  bytes.uint64(metadata.size);
  for (const [key, value] of metadata) {
    bytes.string(key);
    writeValue(bytes, value);
  }
  let end = 0;
  const places = tensors.map(({ name, type, shape }) => {
    bytes.string(name);
    bytes.uint32(shape.length);
    for (const size of shape.toReversed()) bytes.uint64(size);
    bytes.uint32(tensorTypeId(type));
    bytes.uint64(end);
    const { blockValues, blockBytes } = findTensorType(tensorTypeId(type))!; // Types come from this table.
    const sizeBytes = (elementCount(shape) / blockValues) * blockBytes;
    const padding = paddingOf(sizeBytes);
    end += sizeBytes + padding;
    return { sizeBytes, padding };
  });
  bytes.zeros(paddingOf(bytes.length));
  const head = bytes.toBytes();
  return { head, tensors: places, sizeBytes: head.length + end };
}

function paddingOf(length: number): number {
  return (alignment - (length % alignment)) % alignment;
}

function writeValue(bytes: ByteList, typed: TypedValue): void {
  const { type, value } = typed;
  switch (type) {
    case 'uint32':
    case 'int32':
      bytes.uint32(valueTypes[type]);
      bytes.uint32(value);
      return;
    case 'float32':
      bytes.uint32(valueTypes.float32);
      bytes.append(new Uint8Array(Float32Array.of(value).buffer));
      return;
    case 'bool':
      bytes.uint32(valueTypes.bool);
      bytes.append(Uint8Array.of(value ? 1 : 0));
      return;
    case 'string':
      bytes.uint32(valueTypes.string);
      bytes.string(value);
      return;
    case 'strings':
      bytes.uint32(valueTypes.array);
      bytes.uint32(valueTypes.string);
      bytes.uint64(value.length);
      for (const item of value) bytes.string(item);
      return;
    case 'int32s':
      bytes.uint32(valueTypes.array);
      bytes.uint32(valueTypes.int32);
      bytes.uint64(value.length);
      bytes.append(new Uint8Array(Int32Array.from(value).buffer));
      return;
    default:
      typed satisfies never;
  }
}

/** Bytes that grow at their end. */
class ByteList {
  #bytes = new Uint8Array(1 << 16);
  length = 0;

  append(added: Uint8Array): void {
    const end = this.length + added.length;
    if (end > this.#bytes.length) {
      const larger = new Uint8Array(2 * end);
      larger.set(this.#bytes.subarray(0, this.length));
      this.#bytes = larger;
    }
    this.#bytes.set(added, this.length);
    this.length = end;
  }

  ascii(text: string): void {
    this.append(new TextEncoder().encode(text));
  }

  uint32(value: number): void {
    this.append(new Uint8Array(Uint32Array.of(value).buffer));
  }

  uint64(value: number): void {
    this.append(new Uint8Array(BigUint64Array.of(BigInt(value)).buffer));
  }

  string(text: string): void {
    const encoded = new TextEncoder().encode(text);
    this.uint64(encoded.length);
    this.append(encoded);
  }

  zeros(count: number): void {
    this.append(new Uint8Array(count));
  }

  toBytes(): Uint8Array {
    return this.#bytes.subarray(0, this.length);
  }
}
