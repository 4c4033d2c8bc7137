/** Conversions from the number formats of weight files to 32-bit values, fast enough for hundreds of millions of them. */

/** bfloat16 bits to float32: the upper half of the same bits. `source` may overlap the end of `target` (see readFloat32). */
export function widenBfloat16(source: Uint16Array, target: Float32Array): void {
  const bits = new Uint32Array(target.buffer, target.byteOffset, target.length);
  for (let i = 0; i < source.length; i++) bits[i] = source[i]! << 16;
}

/** IEEE half precision bits to float32, exactly, by a table of all 65,536 values. `source` may overlap the end of `target`. */
export function widenFloat16(source: Uint16Array, target: Float32Array): void {
  float16Table ??= makeFloat16Table();
  const table = float16Table;
  // Bits, not floats: some processors quieten a signalling NaN on the way through a float register.
  const bits = new Uint32Array(target.buffer, target.byteOffset, target.length);
  for (let i = 0; i < source.length; i++) bits[i] = table[source[i]!]!;
}

/** One half-precision value, exactly. */
export function halfToFloat(bits: number): number {
  float16Table ??= makeFloat16Table();
  float16Values ??= new Float32Array(float16Table.buffer);
  return float16Values[bits]!;
}

// 256 KiB, made at the first half-precision file; a cache of a constant, not state.
let float16Table: Uint32Array<ArrayBuffer> | undefined;
let float16Values: Float32Array | undefined;

function makeFloat16Table(): Uint32Array<ArrayBuffer> {
  const table = new Uint32Array(65_536);
  const value = new Float32Array(1);
  const bits = new Uint32Array(value.buffer);
  for (let half = 0; half < table.length; half++) {
    const sign = (half & 0x8000) << 16;
    const exponent = (half >> 10) & 31;
    const fraction = half & 1023;
    if (exponent === 31) {
      table[half] = sign | 0x7f800000 | (fraction << 13);
    } else {
      // Subnormals have no hidden bit; 2^-24 is the smallest of them.
      value[0] = exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25);
      table[half] = bits[0]! | sign;
    }
  }
  return table;
}

/** Index of the first NaN or infinity, or −1. */
export function firstNonFinite(values: Float32Array): number {
  const bits = new Uint32Array(values.buffer, values.byteOffset, values.length);
  for (let i = 0; i < bits.length; i++) if ((bits[i]! & 0x7f800000) === 0x7f800000) return i;
  return -1;
}

/** Product of the sizes; 1 for a scalar. */
export function elementCount(shape: readonly number[]): number {
  return shape.reduce((product, size) => product * size, 1);
}

export function sameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((size, axis) => size === b[axis]);
}

/** `[8, 64]`, as messages show it. */
export function showShape(shape: readonly number[]): string {
  return `[${shape.join(', ')}]`;
}
