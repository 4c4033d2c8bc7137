/** From judged episodes to what is trained on: an advantage for each of their turns, by the rewards of their group. */
import type { DatumFor } from '@loopwright/protocol';
import type { RlLossName } from '../datums/rl-datum.js';
import type { EpisodeProblem } from '../episodes/environment.js';
import { episodeDatums } from '../episodes/episode-datums.js';
import type { EpisodeRollout } from '../episodes/run-episode.js';
import type { EpisodeGroup } from '../episodes/run-episodes.js';
import type { EpisodeSequence } from '../episodes/transcript.js';
import type { DatumSource } from '../guard/facts.js';
import type { ReferencedDatum } from '../losses/loss-datum.js';
import { klEstimate } from '../statistics/kl.js';
import { lengthDivisors } from '../statistics/lengths.js';
import type { Scorer } from './clients.js';
import { areEqual, type Credit, creditedAdvantages } from './episode-credit.js';
import type { DataOptions } from './grpo-data.js';
import type { Resolved } from './grpo-options.js';
import type { TrainingData } from './grpo-task.js';
import type { Scope } from './scope.js';

type Group = EpisodeGroup<EpisodeProblem> & { readonly age?: number };

/** Log-probabilities of each sequence's tokens under the reference, the first left out: nothing predicts it. */
export async function scoreEpisodes(
  groups: readonly Group[],
  {
    scorer,
    scores,
    scope,
  }: { readonly scorer: Scorer; readonly scores: Map<object, readonly number[]>; readonly scope: Scope },
): Promise<void> {
  const sequences = groups.flatMap(({ rollouts }) => rollouts.flatMap((rollout) => rollout.sequences));
  const scored = await scope.all(
    sequences.map(
      (sequence) => (signal: AbortSignal) =>
        scorer.computeLogprobs(
          sequence.flatMap(({ context, answer }) => [...context, ...answer.tokens]),
          { signal },
        ),
    ),
  );
  for (const [i, sequence] of sequences.entries())
    scores.set(
      sequence,
      (scored[i] ?? []).slice(1).map((logprob) => logprob ?? Number.NaN),
    );
}

/** Whether a group has something to train on. */
export function teachesEpisodes(
  { rollouts }: Group,
  { overlong, credit }: Pick<EpisodeDataOptions, 'overlong' | 'credit'>,
): boolean {
  const judged = rollouts.filter(isJudged);
  return !areEqual(judged, credit) && judged.some((rollout) => isTrained(rollout, overlong));
}

export interface EpisodeDataOptions extends DataOptions {
  readonly credit: Credit;
}

/** Datums of the groups that teach something. */
export function episodeData(groups: readonly Group[], options: EpisodeDataOptions): TrainingData {
  const { overlong, lengthNormalization } = options;
  const live = groups.filter((group) => teachesEpisodes(group, options));
  const judged_PG = live.map(({ rollouts }) => rollouts.filter(isJudged));
  const advantages_PGT = creditedAdvantages(judged_PG, options);
  const trained_PG = judged_PG.map((rollouts, p) =>
    rollouts.flatMap((rollout, g) =>
      isTrained(rollout, overlong) ? [{ rollout, advantages: advantages_PGT[p]![g]! }] : [],
    ),
  );
  const divisors_PG = lengthDivisors(
    trained_PG.map((episodes) => episodes.map(({ rollout }) => sampledTokens(rollout))),
    lengthNormalization,
  );
  const made = trained_PG.flatMap((episodes, p) =>
    episodes.flatMap(({ rollout, advantages }, g) =>
      rollout.sequences.flatMap((sequence) =>
        datumsOf({ rollout, sequence, advantages, divisor: divisors_PG[p]![g]! }, options).map((each) => ({
          ...each,
          source: sourceOf(sequence, live[p]!),
        })),
      ),
    ),
  );
  return {
    data: made.map(({ datum }) => datum),
    near: made.flatMap(({ near }) => near ?? []),
    sources: made.map(({ source }) => source),
  };
}

function sourceOf(sequence: EpisodeSequence, { age }: Group): DatumSource {
  const parts = sequence.flatMap(({ context, answer }, i): DatumSource['parts'] => [
    { kind: i === 0 ? 'prompt' : 'context', tokens: context },
    { kind: 'sampled', tokens: answer.tokens },
  ]);
  return { parts, ...(age === undefined ? {} : { age }) };
}

interface OneSequence {
  readonly rollout: EpisodeRollout;
  readonly sequence: EpisodeSequence;
  /** Of its turns. */
  readonly advantages: readonly number[];
  readonly divisor: number;
}

function datumsOf(
  { rollout, sequence, advantages: ofTurns, divisor }: OneSequence,
  { reference, klCoefficient, estimator, placement }: DataOptions,
): { readonly datum: DatumFor<RlLossName>; readonly near?: ReferencedDatum }[] {
  const { turns } = rollout;
  const advantage = ofTurns.map((each) => each / divisor);
  const datums = episodeDatums({ rollout: { sequences: [sequence], turns }, advantage });
  const scores = reference?.get(sequence);
  if (klCoefficient === 0 || scores === undefined) return datums.map((datum) => ({ datum }));
  return datums.map((datum) => {
    const { targetTokens, ...inputs } = datum.lossFnInputs;
    const [weights, logprobs, advantages] = [inputs.weights, inputs.logprobs, inputs.advantages].map((values) =>
      Array.from<unknown, number>(values, Number),
    ) as [number[], number[], number[]]; // true: three in, three out
    // What the model didn't sample weighs nothing, and its scores say nothing.
    const refLogProb = weights.map((weight, t) => (weight === 0 ? 0 : (scores[t] ?? Number.NaN)));
    if (placement === 'loss') {
      const near = { targetTokens, weights: weights.map((weight) => weight / divisor), refLogProb };
      return { datum, near: { modelInput: datum.modelInput, lossFnInputs: near } };
    }
    const penalties = klEstimate(estimator, logprobs, refLogProb);
    const lowered = advantages.map((value, t) =>
      weights[t] === 0 ? 0 : value - (klCoefficient * penalties[t]!) / divisor,
    );
    return { datum: { ...datum, lossFnInputs: { ...datum.lossFnInputs, advantages: lowered } } };
  });
}

function sampledTokens({ turns }: EpisodeRollout): number {
  return turns.reduce((sum, { sequence }) => sum + sequence.tokens.length, 0);
}

/** Has a reward, be it the floor of a failed grader, and something that was sampled. */
export function isJudged(rollout: EpisodeRollout): boolean {
  return rollout.reward !== undefined && sampledTokens(rollout) > 0;
}

function isTrained({ turns }: EpisodeRollout, overlong: Resolved['overlong']): boolean {
  return overlong !== 'mask' || turns.every(({ sequence }) => sequence.stopReason !== 'length');
}
