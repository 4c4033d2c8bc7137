/** Blocks of quantized values to float32, to the bit as ggml's reference does it: one scale for a block, whole numbers times it. */
import { halfToFloat } from '../numbers.js';
import type { TensorTypeName } from './tensor-types.js';

export type QuantizedType = Exclude<TensorTypeName, 'F32' | 'F16' | 'BF16'>;

/**
 * Values of whole blocks.
 *
 * @param blocks bytes of the blocks, one after the other
 * @param target as many values as the blocks hold
 */
export function dequantize(name: QuantizedType, blocks: Uint8Array, target: Float32Array): void {
  const functions = { Q8_0: dequantizeQ80, Q4_0: dequantizeQ40, Q4_1: dequantizeQ41, Q6_K: dequantizeQ6K };
  functions[name](blocks, target);
}

function half(bytes: Uint8Array, at: number): number {
  return halfToFloat(bytes[at]! | (bytes[at + 1]! << 8));
}

/** A scale and 32 signed bytes. */
function dequantizeQ80(blocks: Uint8Array, target: Float32Array): void {
  for (let to = 0, at = 0; to < target.length; to += 32, at += 34) {
    const scale = half(blocks, at);
    for (let i = 0; i < 32; i++) target[to + i] = ((blocks[at + 2 + i]! << 24) >> 24) * scale;
  }
}

/** A scale and 16 bytes, value i in the low half of byte i, value 16 + i in the high one; from all of them 8 is taken off. */
function dequantizeQ40(blocks: Uint8Array, target: Float32Array): void {
  for (let to = 0, at = 0; to < target.length; to += 32, at += 18) {
    const scale = half(blocks, at);
    for (let i = 0; i < 16; i++) {
      const pair = blocks[at + 2 + i]!;
      target[to + i] = ((pair & 15) - 8) * scale;
      target[to + 16 + i] = ((pair >> 4) - 8) * scale;
    }
  }
}

/** The same with a minimum after the scale, which is added, in place of the 8. */
function dequantizeQ41(blocks: Uint8Array, target: Float32Array): void {
  for (let to = 0, at = 0; to < target.length; to += 32, at += 20) {
    const [scale, minimum] = [half(blocks, at), half(blocks, at + 2)];
    for (let i = 0; i < 16; i++) {
      const pair = blocks[at + 4 + i]!;
      target[to + i] = (pair & 15) * scale + minimum;
      target[to + 16 + i] = (pair >> 4) * scale + minimum;
    }
  }
}

/**
 * 256 values of 6 bits, 128 bytes of low halves, 64 of upper pairs of bits, a signed byte as scale for every 16 values, and a scale
 * for all. They lie in two times 128 values, and in each as four runs of 32.
 */
function dequantizeQ6K(blocks: Uint8Array, target: Float32Array): void {
  for (let to = 0, at = 0; to < target.length; to += 256, at += 210) {
    const scale = half(blocks, at + 208);
    for (let part = 0; part < 2; part++) {
      const [low, high, scales] = [at + 64 * part, at + 128 + 32 * part, at + 192 + 8 * part];
      for (let i = 0; i < 32; i++) {
        const upper = blocks[high + i]!;
        for (let run = 0; run < 4; run++) {
          const byte = blocks[low + 32 * (run & 1) + i]!;
          const bits = (run < 2 ? byte & 15 : byte >> 4) | (((upper >> (2 * run)) & 3) << 4);
          const runScale = (blocks[scales + 2 * run + (i >> 4)]! << 24) >> 24;
          // The product of the scales is exact in float32, so that one rounding is left, as in the reference.
          target[to + 128 * part + 32 * run + i] = scale * runScale * (bits - 32);
        }
      }
    }
  }
}
