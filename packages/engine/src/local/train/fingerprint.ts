/** One short text for all trained weights, so that two runs can be compared step by step without keeping every step's weights. */
import { createHash } from 'node:crypto';

/** An array that is trained, with the name it is trained under. */
export interface NamedWeights {
  readonly name: string;
  readonly values: Float32Array;
}

/**
 * A fingerprint of arrays: the first 128 bits of a SHA-256 over names, lengths and bits, in the order of the names. Equal
 * fingerprints mean equal bits. Ten million values take about 30 ms.
 *
 * @returns 32 hexadecimal digits
 */
export function weightsFingerprint(arrays: Iterable<NamedWeights>): string {
  const hash = createHash('sha256');
  for (const { name, values } of [...arrays].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    hash.update(`${name}\n${values.length}\n`);
    hash.update(new Uint8Array(values.buffer, values.byteOffset, values.byteLength));
  }
  return hash.digest('hex').slice(0, 32);
}
