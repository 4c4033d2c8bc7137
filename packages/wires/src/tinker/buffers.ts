/** Little-endian buffers of the protobuf messages ⇄ typed arrays. */
import { complaint } from '@loopwright/protocol';
import { maxTokenId } from '../tensor-data.js';

/** A copy at an even address, since the parts of a message lie anywhere. */
function aligned(bytes: Uint8Array, size: number, field: string): ArrayBuffer {
  if (bytes.byteLength % size !== 0) {
    throw complaint({ field, expected: `a multiple of ${size} bytes`, got: `${bytes.byteLength} bytes` });
  }
  // Not slice(): a Node Buffer's shares its memory.
  return new Uint8Array(bytes).buffer;
}

export function int32sOf(bytes: Uint8Array, field: string): Int32Array {
  return new Int32Array(aligned(bytes, 4, field));
}

export function float32sOf(bytes: Uint8Array, field: string): Float32Array {
  return new Float32Array(aligned(bytes, 4, field));
}

/** int64 that stand for ids, positions or small whole numbers. @throws `invalid_argument` naming the first that is no int32 */
export function int64sOf(bytes: Uint8Array, field: string): Int32Array {
  const wide = new BigInt64Array(aligned(bytes, 8, field));
  const narrow = new Int32Array(wide.length);
  const limit = BigInt(maxTokenId);
  for (let i = 0; i < wide.length; i++) {
    const value = wide[i]!;
    if (value < -limit || value > limit) {
      throw complaint({ field: `${field}[${i}]`, expected: `an integer of ${maxTokenId} at most`, got: String(value) });
    }
    narrow[i] = Number(value);
  }
  return narrow;
}

/** bfloat16 is the upper half of a float32. */
export function bfloat16sOf(bytes: Uint8Array, field: string): Float32Array {
  const halves = new Uint16Array(aligned(bytes, 2, field));
  const bits = Uint32Array.from(halves, (half) => half << 16);
  return new Float32Array(bits.buffer);
}

export function bytesOf(array: Int32Array | Float32Array | BigInt64Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(array.buffer as ArrayBuffer, array.byteOffset, array.byteLength); // true: none of ours are shared
}
