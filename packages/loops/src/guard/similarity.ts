/** How alike the answers to a problem are. */
import { mean } from '../statistics/advantages.js';
import type { SampleFacts } from './facts.js';
import type { Observation } from './observation.js';

/** What is compared of a step, so that it costs the same however large it is. */
const [maxGroups, maxTokens] = [16, 256];

/** Mean over groups of the mean Jaccard similarity of each answer and the next, over pairs of neighbouring tokens. */
export function similarityOf({ groups }: Pick<Observation, 'groups'>): { readonly similarity?: number } {
  const of = groups
    .filter(({ samples }) => samples.length > 1)
    .slice(0, maxGroups)
    .map(({ samples }) => {
      const sets = samples.map(pairsOf);
      return mean(sets.slice(1).map((set, i) => jaccard(sets[i]!, set)));
    });
  return of.length === 0 ? {} : { similarity: mean(of) };
}

function pairsOf({ tokens }: SampleFacts): Set<number> {
  const pairs = new Set<number>();
  const end = Math.min(tokens.length, maxTokens);
  // The first token pairs with nothing before it, so that answers of one token can be compared too.
  for (let i = 0; i < end; i++) pairs.add((i === 0 ? -1 : tokens[i - 1]!) * 2 ** 20 + tokens[i]!);
  return pairs;
}

function jaccard(a: ReadonlySet<number>, b: ReadonlySet<number>): number {
  let shared = 0;
  for (const pair of a) if (b.has(pair)) shared += 1;
  const all = a.size + b.size - shared;
  return all === 0 ? 1 : shared / all;
}
