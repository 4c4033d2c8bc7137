/** Which groups of answers there were lately, by a hash: to see the same ones come again. */
import type { GroupFacts } from './facts.js';
import type { Observation } from './observation.js';
import { TwoHashes } from './two-hashes.js';

/** Groups that are remembered. */
const keptGroups = 256;

export interface PastGroups {
  /** Hash of prompt and answers → the step; in the order in which they came. */
  readonly hashes: ReadonlyMap<string, number>;
}

/** Undefined without a prompt. Of 64 bits, so that 256 groups meet by chance less than once in 10^14 steps. */
export function groupHash({ prompt, samples }: GroupFacts): string | undefined {
  if (prompt === undefined) return undefined;
  const hashes = new TwoHashes();
  for (const tokens of [prompt, ...samples.map((sample) => sample.tokens)]) {
    hashes.add(-1 - tokens.length);
    for (let i = 0; i < tokens.length; i++) hashes.add(tokens[i]!);
  }
  return hashes.text;
}

export function rememberGroups({ hashes }: PastGroups, { step, groups }: Observation): PastGroups {
  const found = groups.flatMap((group) => groupHash(group) ?? []);
  if (found.length === 0) return { hashes };
  const all = [...hashes, ...found.map((hash) => [hash, step] as const)];
  return { hashes: new Map(all.slice(-keptGroups)) };
}
