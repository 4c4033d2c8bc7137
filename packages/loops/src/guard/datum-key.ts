/** What tells one datum from another: a hash of its tokens. */
import type { DatumFacts } from './facts.js';
import { TwoHashes } from './two-hashes.js';

export function datumKey({ modelInput, lossFnInputs: { targetTokens } }: DatumFacts): number {
  const hashes = new TwoHashes();
  for (let t = 0; t < modelInput.length; t++) hashes.add(modelInput[t]!);
  hashes.add(-1);
  for (let t = 0; t < targetTokens.length; t++) for (const id of [targetTokens[t]!].flat()) hashes.add(Number(id));
  return hashes.number;
}
