/** An open GGUF file: its metadata, and its tensors as float32. */
import type { FileHandle } from 'node:fs/promises';
import { LoopwrightError } from '@loopwright/protocol';
import { throwIfCancelled } from '../atomic-file.js';
import { elementCount } from '../numbers.js';
import { bytesOf, invalidFile, openForReading, readFully, readHalves, showName, valuesFor } from '../source-file.js';
import { dequantize } from './dequantize.js';
import { type GgufHeader, type GgufTensor, type GgufValue, NeedsMoreBytes, parseGgufHeader } from './header.js';
import { findTensorType, tensorTypeId } from './tensor-types.js';

/** A head is read in a piece of this size, or of twice that until it is whole. */
const firstBytes = 4 * 2 ** 20;

/** Quantized tensors are read in pieces of about this size. */
const pieceBytes = 8 * 2 ** 20;

/** Close it with `await using`; reading after that throws `disposed`. */
export class GgufFile implements AsyncDisposable {
  readonly path: string;
  readonly metadata: ReadonlyMap<string, GgufValue>;
  readonly tensors: ReadonlyMap<string, GgufTensor>;
  #handle: FileHandle | undefined;

  private constructor(path: string, header: GgufHeader, handle: FileHandle) {
    this.path = path;
    this.metadata = header.metadata;
    this.tensors = header.tensors;
    this.#handle = handle;
  }

  /** @throws `model_invalid`, `unsupported_model` as {@link parseGgufHeader}; `model_invalid` when it can't be opened */
  static async open(path: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<GgufFile> {
    throwIfCancelled(signal, path);
    const handle = await openForReading(path, 'GGUF');
    try {
      const { size: fileBytes } = await handle.stat();
      return new GgufFile(path, await readHeader(handle, { path, fileBytes, signal }), handle);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** What the head says of a tensor. @throws `model_invalid` when the file has no such tensor */
  info(name: string): GgufTensor {
    const info = this.tensors.get(name);
    if (info === undefined) throw invalidFile(this.path, showName(name), 'a tensor of this name in the file', 'none');
    return info;
  }

  /**
   * A tensor's values as float32, exactly those that ggml computes with.
   *
   * @param into where to put them, of the tensor's length; a new array by default. The caller owns the result
   * @throws `model_invalid` when the file has become shorter, `disposed` after closing, `cancelled`
   */
  async readFloat32(
    name: string,
    { into, signal }: { readonly into?: Float32Array; readonly signal?: AbortSignal } = {},
  ): Promise<Float32Array> {
    const info = this.info(name);
    const count = elementCount(info.shape);
    const values = valuesFor(name, count, into);
    const read = (bytes: Uint8Array, position = info.offset) =>
      readFully(this.#open(), bytes, position, { path: this.path, signal });
    switch (info.type) {
      case 'F32':
        await read(bytesOf(values));
        return values;
      case 'F16':
      case 'BF16':
        await readHalves(info.type, values, read);
        return values;
      default: {
        const { blockValues, blockBytes } = findTensorType(tensorTypeId(info.type))!; // Types come from this table.
        const blocks = count / blockValues;
        const perPiece = Math.min(blocks, Math.ceil(pieceBytes / blockBytes));
        const piece = new Uint8Array(perPiece * blockBytes);
        for (let start = 0; start < blocks; start += perPiece) {
          const end = Math.min(blocks, start + perPiece);
          const bytes = piece.subarray(0, (end - start) * blockBytes);
          await read(bytes, info.offset + start * blockBytes);
          dequantize(info.type, bytes, values.subarray(start * blockValues, end * blockValues));
        }
        return values;
      }
    }
  }

  #open(): FileHandle {
    if (this.#handle === undefined) {
      throw new LoopwrightError({ code: 'disposed', message: `${this.path}: read after it was closed` });
    }
    return this.#handle;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    await handle?.close();
  }
}

async function readHeader(
  handle: FileHandle,
  {
    path,
    fileBytes,
    signal,
  }: { readonly path: string; readonly fileBytes: number; readonly signal?: AbortSignal | undefined },
): Promise<GgufHeader> {
  for (let length = Math.min(firstBytes, fileBytes); ; length = Math.min(2 * length, fileBytes)) {
    const bytes = new Uint8Array(length);
    await readFully(handle, bytes, 0, { path, signal });
    try {
      return parseGgufHeader(bytes, { path, fileBytes });
    } catch (error) {
      if (!(error instanceof NeedsMoreBytes)) throw error;
    }
  }
}
