/** What tells one datum from another: a hash of its tokens. */
import type { DatumFacts } from './facts.js';

/** 53 bits of two hashes, so that a million datums meet by chance once in ten thousand times. */
export function datumKey({ modelInput, lossFnInputs: { targetTokens } }: DatumFacts): number {
  let [a, b] = [0x811c9dc5, 0x9e3779b9];
  const add = (value: number): void => {
    a = Math.imul(a ^ value, 0x01000193);
    b = Math.imul(b ^ value, 0x85ebca6b) ^ (b >>> 15);
  };
  for (let t = 0; t < modelInput.length; t++) add(modelInput[t]!);
  add(-1);
  for (let t = 0; t < targetTokens.length; t++) for (const id of [targetTokens[t]!].flat()) add(Number(id));
  return (a >>> 0) * 2 ** 21 + ((b >>> 0) & (2 ** 21 - 1));
}
