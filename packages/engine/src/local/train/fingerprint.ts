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
  const slices = fingerprintSlices(arrays);
  for (;;) {
    const next = slices.next();
    if (next.done === true) return next.value;
  }
}

/** Values of one slice: some ten milliseconds. */
const sliceValues = 4_000_000;

/** {@link weightsFingerprint} in bounded slices. */
export function* fingerprintSlices(arrays: Iterable<NamedWeights>): Generator<void, string> {
  const hash = createHash('sha256');
  let sinceSlice = 0;
  for (const { name, values } of [...arrays].sort((a, b) => (a.name < b.name ? -1 : 1))) {
    hash.update(`${name}\n${values.length}\n`);
    for (let start = 0; start < values.length; start += sliceValues) {
      const part = values.subarray(start, start + sliceValues);
      hash.update(new Uint8Array(part.buffer, part.byteOffset, part.byteLength));
      sinceSlice += part.length;
      if (sinceSlice < sliceValues) continue;
      sinceSlice = 0;
      yield;
    }
  }
  return hash.digest('hex').slice(0, 32);
}
