/** float32 values to the formats that GGUF files are written in, to the bit as ggml's reference does it. */

/** Largest value of half precision. */
export const largestHalf = 65_504;

/** Half-precision bits, to the nearest, ties to even; beyond ±65,504 infinity. */
export function toHalf(values: Float32Array): Uint16Array {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  const halves = new Uint16Array(values.length);
  for (let i = 0; i < bits.length; i++) halves[i] = halfBits(bits[i]!);
  return halves;
}

function halfBits(single: number): number {
  const sign = (single >>> 16) & 0x8000;
  const magnitude = single & 0x7fffffff;
  if (magnitude >= 0x7f800000) return sign | (magnitude > 0x7f800000 ? 0x7e00 : 0x7c00);
  // From 65,520 on, half-way to the next that there would be.
  if (magnitude >= 0x477ff000) return sign | 0x7c00;
  if (magnitude >= 0x38800000) {
    // Drop 13 bits of the fraction; a carry moves into the exponent, as it should.
    const rounded = magnitude + 0xfff + ((magnitude >>> 13) & 1);
    return sign | ((rounded - 0x38000000) >>> 13);
  }
  // Subnormal: the fraction with its hidden bit, shifted to multiples of 2^-24. At most half of the smallest becomes 0.
  const shift = 126 - (magnitude >>> 23);
  if (shift > 24) return sign;
  const fraction = (magnitude & 0x7fffff) | 0x800000;
  const kept = fraction >>> shift;
  const rest = fraction & ((1 << shift) - 1);
  const half = 1 << (shift - 1);
  return sign | (kept + (rest > half || (rest === half && (kept & 1) === 1) ? 1 : 0));
}

/**
 * Q8_0: for every 32 values the scale max|x|/127 in half precision, and a signed byte each.
 *
 * @param values a multiple of 32
 */
export function toQ80(values: Float32Array): Uint8Array {
  const blocks = new Uint8Array((values.length / 32) * 34);
  const scale = new Float32Array(1);
  for (let from = 0, at = 0; from < values.length; from += 32, at += 34) {
    let largest = 0;
    for (let i = from; i < from + 32; i++) largest = Math.max(largest, Math.abs(values[i]!));
    scale[0] = largest / 127;
    const inverse = scale[0] === 0 ? 0 : Math.fround(1 / scale[0]);
    const [half = 0] = toHalf(scale);
    blocks[at] = half & 255;
    blocks[at + 1] = half >> 8;
    for (let i = 0; i < 32; i++) blocks[at + 2 + i] = roundHalfAway(Math.fround(values[from + i]! * inverse));
  }
  return blocks;
}

function roundHalfAway(value: number): number {
  return Math.sign(value) * Math.round(Math.abs(value));
}
