/** Causal masks, one for each length that occurs. */

/** Far below any score, and finite, so that a softmax over it gives exactly 0 without NaN. */
export const maskedOut = -1e9;

const masks = new Map<number, Float32Array>();
/** Elements of all masks that are kept, 64 MB: one of 8,192 tokens alone has 268 MB, and is made in a small part of the time of its pass. */
const keptElements = 2 ** 24;

/** [S, S] row-major: 0 where key j ≤ query i, else {@link maskedOut}. */
export function causalMask(S: number): Float32Array {
  let mask = masks.get(S);
  if (mask === undefined) {
    mask = new Float32Array(S * S);
    for (let i = 0; i < S; i++) mask.fill(maskedOut, i * S + i + 1, (i + 1) * S);
    if (mask.length <= keptElements) masks.set(S, mask);
    let total = 0;
    for (const { length } of masks.values()) total += length;
    for (const [size, { length }] of masks) {
      if (total <= keptElements) break;
      masks.delete(size);
      total -= length;
    }
  }
  return mask;
}
