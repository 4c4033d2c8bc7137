/** Causal masks, one for each length that occurs. */

/** Far below any score, and finite, so that a softmax over it gives exactly 0 without NaN. */
export const maskedOut = -1e9;

const masks = new Map<number, Float32Array>();
const keep = 8;

/** [S, S] row-major: 0 where key j ≤ query i, else {@link maskedOut}. */
export function causalMask(S: number): Float32Array {
  let mask = masks.get(S);
  if (mask === undefined) {
    mask = new Float32Array(S * S);
    for (let i = 0; i < S; i++) mask.fill(maskedOut, i * S + i + 1, (i + 1) * S);
    if (masks.size >= keep) masks.delete(masks.keys().next().value ?? S);
    masks.set(S, mask);
  }
  return mask;
}
