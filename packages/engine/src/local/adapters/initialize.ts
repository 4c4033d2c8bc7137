/** Seeded initialisation of an adapter, as PEFT does it: A uniform in ±1/√in (Kaiming with a = √5), B zero, so that it starts as nothing. */
import { uniform } from '../random.js';

/** A [rank, in] of one layer; the draw depends on the seed and the layer's key alone. */
export function initialA({
  seed,
  key,
  rank,
  inFeatures,
}: {
  seed: number;
  key: string;
  rank: number;
  inFeatures: number;
}): Float32Array {
  const bound = 1 / Math.sqrt(inFeatures);
  const salt = [...key].reduce((hash, char) => Math.imul(hash ^ char.charCodeAt(0), 0x01000193) >>> 0, 0x811c9dc5);
  return Float32Array.from({ length: rank * inFeatures }, (_, i) => (2 * uniform(seed, salt, i) - 1) * bound);
}
