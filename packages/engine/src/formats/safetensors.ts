/**
 * The safetensors file format: an 8-byte little-endian header length, a JSON header, then the tensors' bytes, row-major,
 * little-endian and without gaps. Files come from outside, so everything in the header is checked against the file's size
 * before memory is taken for it.
 */
import type { FileHandle } from 'node:fs/promises';
import { complaint, LoopwrightError } from '@loopwright/protocol';
import { throwIfCancelled, type WriteOptions, writeFileAtomically } from './atomic-file.js';
import { blockArrays } from './blocks.js';
import { elementCount, showShape } from './numbers.js';
import {
  bytesOf,
  cutFile as cut,
  invalidFile as invalid,
  openForReading,
  readFully,
  readHalves,
  readPartsFully,
  showName as show,
  valuesFor,
} from './source-file.js';

/** Limits on a header; the first is the format's own, the others leave room above any published model. */
export const safetensorsLimits = {
  headerBytes: 100_000_000,
  tensors: 100_000,
  dimensions: 8,
  nameLength: 1024,
} as const;

const bytesPerElement = {
  F64: 8,
  F32: 4,
  F16: 2,
  BF16: 2,
  I64: 8,
  I32: 4,
  I16: 2,
  I8: 1,
  U64: 8,
  U32: 4,
  U16: 2,
  U8: 1,
  BOOL: 1,
  F8_E4M3: 1,
  F8_E5M2: 1,
} as const;

/** Formats that a header may name. Values of F64, F32, F16 and BF16 can be read as float32, I64 and I32 as int32. */
export type SafetensorsDtype = keyof typeof bytesPerElement;

export interface TensorInfo {
  readonly name: string;
  readonly dtype: SafetensorsDtype;
  readonly shape: readonly number[];
  /** From the start of the file. */
  readonly offset: number;
  readonly sizeBytes: number;
}

export interface SafetensorsHeader {
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly metadata: Readonly<Record<string, string>>;
}

export interface NamedTensor {
  readonly name: string;
  readonly shape: readonly number[];
  readonly data: Float32Array;
}

/** A tensor to be written; `data` may be a function, called when its turn comes, so that one tensor at a time is in memory. */
export interface TensorToWrite {
  readonly name: string;
  readonly shape: readonly number[];
  readonly data: Float32Array | (() => Promise<Float32Array>);
}

/** An open safetensors file. Close it with `await using`; reading after that throws `disposed`. */
export class SafetensorsFile implements AsyncDisposable {
  readonly path: string;
  readonly tensors: ReadonlyMap<string, TensorInfo>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly sizeBytes: number;
  #handle: FileHandle | undefined;

  private constructor(path: string, header: SafetensorsHeader, handle: FileHandle, sizeBytes: number) {
    this.path = path;
    this.sizeBytes = sizeBytes;
    this.tensors = header.tensors;
    this.metadata = header.metadata;
    this.#handle = handle;
  }

  /**
   * Opens a file and reads its header.
   *
   * @throws `model_invalid` when the file is missing, not a file, cut, or its header is malformed or above {@link safetensorsLimits}
   */
  static async open(path: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<SafetensorsFile> {
    throwIfCancelled(signal, path);
    const handle = await openForReading(path, 'safetensors');
    try {
      const { size } = await handle.stat();
      const prefix = new Uint8Array(8);
      if (size < 8) throw cut(path, 'the 8 bytes of the header length', 8, size);
      await readFully(handle, prefix, 0, { path, signal });
      const headerSize = new DataView(prefix.buffer).getBigUint64(0, true);
      if (headerSize > BigInt(safetensorsLimits.headerBytes)) {
        throw invalid(path, 'header', `at most ${safetensorsLimits.headerBytes} bytes`, `${headerSize} bytes`);
      }
      const headerEnd = 8 + Number(headerSize);
      if (size < headerEnd) throw cut(path, 'the header', headerEnd, size);
      const header = new Uint8Array(Number(headerSize));
      await readFully(handle, header, 8, { path, signal });
      return new SafetensorsFile(path, parseSafetensorsHeader(header, { path, fileBytes: size }), handle, size);
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** What the header says of a tensor. @throws `model_invalid` when the file has no such tensor */
  info(name: string): TensorInfo {
    const info = this.tensors.get(name);
    if (info === undefined) throw invalid(this.path, show(name), 'a tensor of this name in the file', 'none');
    return info;
  }

  /**
   * A tensor's values as float32; F16 and BF16 are exact, F64 is rounded.
   *
   * @param into where to put them, of the tensor's length; a new array by default. The caller owns the result
   * @throws `model_invalid` for other dtypes or when the file has become shorter, `disposed` after closing
   */
  async readFloat32(
    name: string,
    { into, signal }: { readonly into?: Float32Array; readonly signal?: AbortSignal } = {},
  ): Promise<Float32Array> {
    const info = this.info(name);
    const count = elementCount(info.shape);
    const values = valuesFor(name, count, into);
    const read = (bytes: Uint8Array) => readFully(this.#open(), bytes, info.offset, { path: this.path, signal });
    switch (info.dtype) {
      case 'F32':
        await read(bytesOf(values));
        return values;
      case 'F16':
      case 'BF16':
        await readHalves(info.dtype, values, read);
        return values;
      case 'F64': {
        const doubles = new Float64Array(count);
        await read(bytesOf(doubles));
        values.set(doubles);
        return values;
      }
      default:
        throw invalid(this.path, show(name), 'F32, F16, BF16 or F64 values', info.dtype);
    }
  }

  /**
   * Values of all tensors by name, in the order of the file, read in few calls: for files of our own with thousands of small tensors.
   *
   * @throws `model_invalid` for other dtypes or when the file has become shorter, `disposed` after closing
   */
  async readAllFloat32({ signal }: { readonly signal?: AbortSignal } = {}): Promise<Map<string, Float32Array>> {
    const infos = [...this.tensors.values()];
    for (const { name, dtype } of infos) if (dtype !== 'F32') throw invalid(this.path, show(name), 'F32 values', dtype);
    const arrays = blockArrays(infos.map(({ shape }) => elementCount(shape)));
    const values = new Map(infos.map(({ name }, i) => [name, arrays[i]!]));
    // Tensors fill the file to its end, in the order of the map: parseSafetensorsHeader made sure.
    const start = infos[0]?.offset ?? 0;
    await readPartsFully(this.#open(), arrays.map(bytesOf), start, { path: this.path, signal });
    return values;
  }

  /** A tensor's values as int32. @throws `model_invalid` when it is neither I64 nor I32, or a value does not fit */
  async readInt32(name: string, { signal }: { readonly signal?: AbortSignal } = {}): Promise<Int32Array> {
    const info = this.info(name);
    const count = elementCount(info.shape);
    const read = (bytes: Uint8Array) => readFully(this.#open(), bytes, info.offset, { path: this.path, signal });
    if (info.dtype === 'I32') {
      const values = new Int32Array(count);
      await read(bytesOf(values));
      return values;
    }
    if (info.dtype !== 'I64') throw invalid(this.path, show(name), 'I64 or I32 values', info.dtype);
    const wide = new BigInt64Array(count);
    await read(bytesOf(wide));
    const values = new Int32Array(count);
    for (let i = 0; i < count; i++) {
      const value = Number(wide[i]!);
      if (value !== (value | 0))
        throw invalid(this.path, `${show(name)}, value ${i}`, 'a 32-bit integer', `${wide[i]}`);
      values[i] = value;
    }
    return values;
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

/**
 * All float tensors of a file, by name, in file order; tensors of whole numbers are left out. For small files: everything is in memory.
 *
 * @throws as {@link SafetensorsFile.open}
 */
export async function readSafetensors(
  path: string,
  options: { readonly signal?: AbortSignal } = {},
): Promise<Map<string, NamedTensor>> {
  await using file = await SafetensorsFile.open(path, options);
  const tensors = new Map<string, NamedTensor>();
  for (const { name, shape, dtype } of file.tensors.values()) {
    if (!dtype.startsWith('F') && dtype !== 'BF16') continue;
    tensors.set(name, { name, shape, data: await file.readFloat32(name, options) });
  }
  return tensors;
}

/**
 * Writes float32 tensors in the order given, atomically (see writeFileAtomically).
 *
 * @throws `invalid_argument` for a name given twice or data that does not fill its shape, `disk_full`, `cancelled`
 */
export async function writeSafetensors(
  path: string,
  tensors: Iterable<TensorToWrite>,
  { metadata = {}, ...options }: WriteOptions & { readonly metadata?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  const list = [...tensors];
  // `format: pt` is what transformers asks for before it loads a file.
  const header: [string, unknown][] = [['__metadata__', { format: 'pt', ...metadata }]];
  const names = new Set<string>(['__metadata__']);
  let end = 0;
  for (const { name, shape } of list) {
    if (names.has(name)) throw complaint({ field: name, expected: 'each name once', got: 'twice' });
    names.add(name);
    const start = end;
    end += 4 * elementCount(shape);
    header.push([name, { dtype: 'F32', shape, data_offsets: [start, end] }]);
  }
  const json = new TextEncoder().encode(
    `{${header.map(([k, v]) => `${JSON.stringify(k)}:${JSON.stringify(v)}`).join(',')}}`,
  );
  // Spaces up to a multiple of 8, so that the values are aligned for readers that map the file.
  const headerSize = Math.ceil(json.length / 8) * 8;
  const head = new Uint8Array(8 + headerSize).fill(0x20);
  new DataView(head.buffer).setBigUint64(0, BigInt(headerSize), true);
  head.set(json, 8);

  await writeFileAtomically(
    path,
    async (append) => {
      let ready: Uint8Array[] = [head];
      for (const { name, shape, data } of list) {
        const values = typeof data === 'function' ? await data() : data;
        if (values.length !== elementCount(shape)) {
          throw complaint({
            field: name,
            expected: `${elementCount(shape)} values for shape ${showShape(shape)}`,
            got: `${values.length}`,
          });
        }
        ready.push(bytesOf(values));
        if (typeof data !== 'function') continue;
        // It may be gone when the next one is made.
        await append(ready);
        ready = [];
      }
      await append(ready);
    },
    { ...options, sizeBytes: head.byteLength + end },
  );
}

/**
 * Checks a header against the size of its file: known dtypes, plausible shapes, and tensors that fill the rest of the file
 * exactly, without gap or overlap.
 *
 * @throws `model_invalid`; for a cut file it names the first tensor that is not whole
 */
export function parseSafetensorsHeader(
  header: Uint8Array,
  { path, fileBytes }: { readonly path: string; readonly fileBytes: number },
): SafetensorsHeader {
  const dataStart = 8 + header.byteLength;
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(header));
  } catch (cause) {
    throw invalid(path, 'header', 'JSON', 'text that is not JSON', cause);
  }
  if (!isRecord(json)) throw invalid(path, 'header', 'a JSON object', describe(json));
  const entries = Object.entries(json).filter(([name]) => name !== '__metadata__');
  if (entries.length > safetensorsLimits.tensors) {
    throw invalid(path, 'header', `at most ${safetensorsLimits.tensors} tensors`, `${entries.length}`);
  }
  const infos = entries.map(([name, value]) => parseTensorInfo(name, value, { path, dataStart }));
  infos.sort((a, b) => a.offset - b.offset || a.sizeBytes - b.sizeBytes);
  let end = dataStart;
  for (const info of infos) {
    if (info.offset !== end) {
      const what = info.offset < end ? 'an overlap with another tensor' : 'a gap before it';
      throw invalid(
        path,
        `${show(info.name)}, data_offsets`,
        `a start at byte ${end - dataStart}`,
        `${info.offset - dataStart} (${what})`,
      );
    }
    end = info.offset + info.sizeBytes;
    if (end > fileBytes) throw cut(path, `tensor ${show(info.name)}`, end, fileBytes);
  }
  if (end !== fileBytes)
    throw invalid(path, 'file size', `${end} bytes, the end of the last tensor`, `${fileBytes} bytes`);
  return { tensors: new Map(infos.map((info) => [info.name, info])), metadata: parseMetadata(json.__metadata__, path) };
}

function parseTensorInfo(
  name: string,
  value: unknown,
  { path, dataStart }: { readonly path: string; readonly dataStart: number },
): TensorInfo {
  const at = show(name);
  if (name.length > safetensorsLimits.nameLength) {
    throw invalid(path, at, `a name of at most ${safetensorsLimits.nameLength} characters`, `${name.length}`);
  }
  if (!isRecord(value)) throw invalid(path, at, 'an object with dtype, shape and data_offsets', describe(value));
  const { dtype, shape, data_offsets: offsets } = value;
  if (typeof dtype !== 'string' || !Object.hasOwn(bytesPerElement, dtype)) {
    throw invalid(path, `${at}, dtype`, `one of ${Object.keys(bytesPerElement).join(', ')}`, describe(dtype));
  }
  const known = dtype as SafetensorsDtype; // Just found among the keys.
  if (!Array.isArray(shape) || shape.length > safetensorsLimits.dimensions || !shape.every(isCount)) {
    throw invalid(path, `${at}, shape`, `up to ${safetensorsLimits.dimensions} whole numbers`, describe(shape));
  }
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isCount)) {
    throw invalid(path, `${at}, data_offsets`, 'two whole numbers', describe(offsets));
  }
  const sizes: readonly number[] = shape;
  const [start, end] = offsets as [number, number]; // Length and items were checked above.
  const sizeBytes = elementCount(sizes) * bytesPerElement[known];
  if (!Number.isSafeInteger(sizeBytes) || end - start !== sizeBytes) {
    throw invalid(
      path,
      `${at}, data_offsets`,
      `${sizeBytes} bytes for ${known} ${showShape(sizes)}`,
      `${end - start} bytes`,
    );
  }
  return { name, dtype: known, shape: sizes, offset: dataStart + start, sizeBytes };
}

function parseMetadata(value: unknown, path: string): Record<string, string> {
  if (value === undefined) return {};
  if (!isRecord(value)) throw invalid(path, '__metadata__', 'an object of strings', describe(value));
  const metadata: Record<string, string> = Object.create(null);
  for (const [key, text] of Object.entries(value)) {
    if (typeof text !== 'string') throw invalid(path, `__metadata__, ${show(key)}`, 'a string', describe(text));
    metadata[key] = text;
  }
  return metadata;
}

function describe(value: unknown): string {
  if (value === undefined) return 'nothing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (typeof value === 'string') return `"${show(value)}"`;
  if (typeof value === 'number') return `${value}`;
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}
