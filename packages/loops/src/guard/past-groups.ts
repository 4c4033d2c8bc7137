/** Which groups of answers there were lately, by a hash: to see the same ones come again. */
import type { GroupFacts } from './facts.js';
import type { Observation } from './observation.js';

/** Groups that are remembered. */
const keptGroups = 256;

export interface PastGroups {
  /** Hash of prompt and answers → the step; in the order in which they came. */
  readonly hashes: ReadonlyMap<string, number>;
}

/** Undefined without a prompt. Two hashes of 32 bits, so that 256 groups meet by chance less than once in 10^14 steps. */
export function groupHash({ prompt, samples }: GroupFacts): string | undefined {
  if (prompt === undefined) return undefined;
  let [a, b] = [0x811c9dc5, 0x9e3779b9];
  const add = (value: number): void => {
    a = Math.imul(a ^ value, 0x01000193);
    b = Math.imul(b ^ value, 0x85ebca6b) ^ (b >>> 15);
  };
  for (const tokens of [prompt, ...samples.map((sample) => sample.tokens)]) {
    add(-1 - tokens.length);
    for (let i = 0; i < tokens.length; i++) add(tokens[i]!);
  }
  return `${a >>> 0} ${b >>> 0}`;
}

export function rememberGroups({ hashes }: PastGroups, { step, groups }: Observation): PastGroups {
  const found = groups.flatMap((group) => groupHash(group) ?? []);
  if (found.length === 0) return { hashes };
  const all = [...hashes, ...found.map((hash) => [hash, step] as const)];
  return { hashes: new Map(all.slice(-keptGroups)) };
}
