/** What weights say of some tokens: a mark by which two sets of weights are told apart. */
import type { EpisodeRollout } from '../episodes/run-episode.js';
import type { SampledRollouts } from '../runs/run-samples.js';
import type { Scorer } from '../training/clients.js';
import type { Rollout } from '../training/rollouts.js';

const count = 4;

/** Prompts with the answers to them, or whole episodes, as ids. */
export function probesOf(groups: readonly SampledRollouts[]): readonly (readonly number[])[] {
  return groups
    .slice(0, count)
    .flatMap(({ prompt = [], rollouts }) => rollouts.slice(0, 1).map((rollout) => idsOf(rollout, prompt)))
    .filter((ids) => ids.length > 1);
}

function idsOf(rollout: Rollout | EpisodeRollout, prompt: readonly number[]): number[] {
  if (!('turns' in rollout)) return [...prompt, ...rollout.sequence.tokens];
  return (rollout.sequences[0] ?? []).flatMap(({ context, answer }) => [...context, ...answer.tokens]);
}

/** Log-probabilities of the probes' tokens under the weights of a scorer. */
export async function markOf(scorer: Scorer, probes: readonly (readonly number[])[]): Promise<readonly number[]> {
  const all = await Promise.all(probes.map((ids) => scorer.computeLogprobs(ids)));
  return all.flat().map((logprob) => logprob ?? 0);
}

export function isSameMark(mark: readonly number[], other: readonly number[]): boolean {
  return mark.length === other.length && mark.every((value, i) => value === other[i]);
}
