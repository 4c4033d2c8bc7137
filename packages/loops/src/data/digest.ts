/** A digest of data: whether two runs saw the same rows in the same order. */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex } from '@noble/hashes/utils.js';
import { contentOf, type JsonValue } from './row.js';
import { canonicalJson } from './row-hash.js';

export interface DataDigest {
  readonly rows: number;
  /** Hexadecimal, of the canonical JSON of each row, a line each. */
  readonly sha256: string;
}

/**
 * The digest of problems, examples or a data set. Of the rows of a data set their content counts, not the file that they lie in. What JSON
 * can't hold (functions) doesn't count.
 *
 * @example const { sha256 } = await dataDigest(arithmetic().problems({ split: 'held-out', count: 200, seed: 1 }));
 */
export async function dataDigest(rows: Iterable<unknown> | AsyncIterable<unknown>): Promise<DataDigest> {
  const hash = sha256.create();
  const encoder = new TextEncoder();
  let count = 0;
  for await (const row of rows) {
    const json = JSON.stringify(contentOf(row)) as string | undefined; // undefined of a function
    hash.update(encoder.encode(`${json === undefined ? '' : canonicalJson(JSON.parse(json) as JsonValue)}\n`)); // true: of JSON
    count += 1;
  }
  return { rows: count, sha256: bytesToHex(hash.digest()) };
}
