/**
 * The form in which operations and results are stored: plain data with typed arrays, in a versioned binary container.
 *
 * Layout, all little-endian: 4 bytes `LWOP`, uint16 version, uint16 zero, uint32 header bytes, uint32 zero; the header (JSON, UTF-8), then
 * each array's bytes, every one at a multiple of 8 from the start of the container. In the header's `value`, an array is
 * `{"$array": i}` (row i of `arrays`: dtype, byte offset, length), a number that JSON can't spell is `{"$number": "NaN"}`,
 * and a `$` that begins a key of the data is doubled. Equal values always give equal bytes, so their hash identifies them.
 */
import { LoopwrightError } from '@loopwright/protocol';

const magic = 0x504f_574c; // "LWOP"
const version = 1;
const preambleBytes = 16;
const maxDepth = 32;

const arrayTypes = { float32: Float32Array, int32: Int32Array } as const;
type ArrayType = keyof typeof arrayTypes;

interface ArrayRow {
  readonly dtype: ArrayType;
  readonly offset: number;
  readonly length: number;
}

/** Encodes JSON-like data that may hold Float32Array and Int32Array. Keys whose value is undefined are left out. */
export function encodeContainer(value: unknown): Uint8Array {
  const rows: ArrayRow[] = [];
  const arrays: (Float32Array | Int32Array)[] = [];
  let offset = 0;
  const lift = (item: unknown): unknown => {
    if (item instanceof Float32Array || item instanceof Int32Array) {
      rows.push({ dtype: item instanceof Float32Array ? 'float32' : 'int32', offset, length: item.length });
      arrays.push(item);
      offset = align(offset + item.byteLength);
      return { $array: rows.length - 1 };
    }
    if (typeof item === 'number' && (!Number.isFinite(item) || Object.is(item, -0))) {
      return { $number: Object.is(item, -0) ? '-0' : String(item) };
    }
    if (Array.isArray(item)) return item.map(lift);
    if (typeof item === 'object' && item !== null) {
      const entries = Object.entries(item).filter(([, member]) => member !== undefined);
      return Object.fromEntries(entries.map(([key, member]) => [key.startsWith('$') ? `$${key}` : key, lift(member)]));
    }
    return item;
  };
  const header = new TextEncoder().encode(JSON.stringify({ value: lift(value), arrays: rows }));
  const base = align(preambleBytes + header.byteLength);
  const bytes = new Uint8Array(base + offset);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, magic, true);
  view.setUint16(4, version, true);
  view.setUint32(8, header.byteLength, true);
  bytes.set(header, preambleBytes);
  rows.forEach((row, index) => {
    const array = arrays[index]!;
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), base + row.offset);
  });
  return bytes;
}

/**
 * Decodes what {@link encodeContainer} wrote. The arrays are copies, owned by the caller.
 * @throws `internal` when the bytes are no container, of another version, or cut
 */
export function decodeContainer(bytes: Uint8Array): unknown {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.byteLength < preambleBytes || view.getUint32(0, true) !== magic) throw broken('it does not begin as one');
  const found = view.getUint16(4, true);
  if (found !== version) throw broken(`its version is ${found}, this release reads ${version}`);
  const headerBytes = view.getUint32(8, true);
  const base = align(preambleBytes + headerBytes);
  if (base > bytes.byteLength) throw broken('its header is cut');
  const header = parse(bytes.subarray(preambleBytes, preambleBytes + headerBytes));
  const arrays = header.arrays.map((row) => readArray(bytes, base, row));
  const restore = (item: unknown, depth: number): unknown => {
    if (depth > maxDepth) throw broken('it is nested too deeply');
    if (Array.isArray(item)) return item.map((member) => restore(member, depth + 1));
    if (typeof item !== 'object' || item === null) return item;
    if ('$array' in item) return arrays[Number(item.$array)] ?? fail('an array is missing');
    if ('$number' in item) return Number(item.$number);
    return Object.fromEntries(
      Object.entries(item).map(([key, member]) => [
        key.startsWith('$$') ? key.slice(1) : key,
        restore(member, depth + 1),
      ]),
    );
  };
  return restore(header.value, 0);
}

function align(offset: number): number {
  return Math.ceil(offset / 8) * 8;
}

function parse(bytes: Uint8Array): { value: unknown; arrays: readonly unknown[] } {
  let header: unknown;
  try {
    header = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw broken('its header is no JSON');
  }
  if (typeof header !== 'object' || header === null || !('value' in header)) throw broken('its header has no value');
  if (!('arrays' in header) || !Array.isArray(header.arrays)) throw broken('its header has no arrays');
  return { value: header.value, arrays: header.arrays };
}

function readArray(bytes: Uint8Array, base: number, row: unknown): Float32Array | Int32Array {
  if (typeof row !== 'object' || row === null) throw broken('an array row is no object');
  const { dtype, offset, length } = row as Record<string, unknown>; // true: any object can be read so; each value is checked below
  if (dtype !== 'float32' && dtype !== 'int32') throw broken('an array has an unknown dtype');
  if (typeof offset !== 'number' || typeof length !== 'number' || offset < 0 || length < 0 || offset % 8 !== 0) {
    throw broken('an array row has no place');
  }
  if (base + offset + length * 4 > bytes.byteLength) throw broken('an array is cut');
  const copy = bytes.slice(base + offset, base + offset + length * 4);
  return new arrayTypes[dtype](copy.buffer, copy.byteOffset, length);
}

function fail(what: string): never {
  throw broken(what);
}

function broken(what: string): LoopwrightError {
  return new LoopwrightError({ code: 'internal', message: `stored operation data can't be read: ${what}` });
}
