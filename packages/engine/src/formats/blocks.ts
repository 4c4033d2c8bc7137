/**
 * Many arrays in few blocks of memory. Allocators keep what small arrays leave behind for arrays to come, but give large blocks back to
 * the system: thousands of arrays that live and die together are best cut from one.
 */

/** Processors read whole lines of this size. */
const alignmentBytes = 64;
const blockBytes = 256 * 1024 * 1024;

/** Zeroed arrays of these lengths. What holds one of them holds its block. */
export function blockArrays(lengths: readonly number[]): Float32Array[] {
  const places: { readonly block: number; readonly offset: number }[] = [];
  const sizes: number[] = [];
  for (const length of lengths) {
    const sizeBytes = Math.ceil((4 * length) / alignmentBytes) * alignmentBytes;
    const last = sizes.at(-1);
    if (last === undefined || last + sizeBytes > blockBytes) {
      places.push({ block: sizes.length, offset: 0 });
      sizes.push(sizeBytes);
    } else {
      places.push({ block: sizes.length - 1, offset: last });
      sizes[sizes.length - 1] = last + sizeBytes;
    }
  }
  const blocks = sizes.map((size) => new ArrayBuffer(size));
  return lengths.map((length, i) => new Float32Array(blocks[places[i]!.block]!, places[i]!.offset, length));
}
